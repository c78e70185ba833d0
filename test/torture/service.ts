import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import type { EmulatorOptions, FaultSettings, LedgerView } from '../../src/emulator/index.ts'
import { profileA } from '../../src/emulator/profile/a.ts'
import { profileB } from '../../src/emulator/profile/b.ts'
import type { OpenDetails } from '../../src/emulator/profile/details.ts'
import type { Fields } from '../support/app.ts'
import type { ProfileName } from '../support/client.ts'

const PROGRAM = fileURLToPath(new URL('service-process.ts', import.meta.url))
const SCOPES = ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read']
/** Asks nothing of the budget of the sidecar's token. */
const USER_TOKEN = 'svc_pat_user'

/** Waits that fit a round of seconds; the interface's own figures are tried elsewhere. */
const LIMITS = {
  retryMs: 100,
  streamSlotMs: 50,
  pingMs: 1000,
  sessions: 10_000,
  creationBurst: 100_000,
  readsBurst: 100_000,
  readsPerSecond: 2000,
  webhookRetryMs: [100, 200, 400, 800, 1600],
  webhookTimeoutMs: 1000,
  streamsPerToken: 50,
  streamsPerOrganization: 200,
} as const

/** The emulator, as a process that can be killed and that restarts with everything that it sent. */
export class Service implements AsyncDisposable {
  readonly details: OpenDetails
  readonly url: string
  restarts = 0
  readonly #options: EmulatorOptions
  #child: ChildProcess | null = null

  constructor(profile: ProfileName, port: number, data: string, limits: EmulatorOptions['limits'] = {}) {
    this.details = profile === 'a' ? profileA : profileB
    this.url = `http://127.0.0.1:${port}`
    this.#options = {
      listen: { host: '127.0.0.1', port },
      openDetails: profile,
      allowHttpWebhooks: true,
      token: USER_TOKEN,
      limits: { ...LIMITS, ...limits },
      data,
    }
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(this.#options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child = child
    const ended = once(child, 'exit').then(([code]: unknown[]) => {
      throw new Error(`the emulator ended with ${String(code)}`)
    })
    await Promise.race([once(child.stdout, 'data'), ended])
    ended.catch(() => undefined)
  }

  /** SIGKILL, and a new process on the same file. */
  async restart(): Promise<void> {
    await this.#kill()
    this.restarts++
    await this.start()
  }

  async faults(settings: FaultSettings): Promise<void> {
    await this.own('PUT', 'faults', settings)
  }

  async ledger(): Promise<LedgerView> {
    return (await this.own('GET', 'ledger')) as unknown as LedgerView
  }

  async mint(): Promise<{ id: string; token: string }> {
    const { id, token } = await this.own('POST', 'tokens', { scopes: SCOPES })
    return { id: String(id), token: String(token) }
  }

  async revoke(id: string): Promise<void> {
    await this.own('DELETE', `tokens/${id}`)
  }

  /** The actions of a person in the Console. */
  async resolve(callId: string, verdict: Fields): Promise<void> {
    await this.own('POST', `actions/${callId}`, verdict)
  }

  async create(tools: Readonly<Record<string, number | null>>): Promise<string> {
    const declared = Object.entries(tools).map(([name, seconds]) => ({
      type: 'function',
      name,
      description: name,
      parameters: { type: 'object' },
      ...(seconds === null ? {} : { timeout_seconds: seconds }),
    }))
    const { id } = await this.#ask('POST', '/v1/sessions', { agent: { tools: declared } })
    return String(id)
  }

  async send(sessionId: string, text: string): Promise<void> {
    const [type, field] = this.details.name === 'a' ? ['input.message', 'text'] : ['user_message', 'content']
    await this.#ask('POST', this.#path('message', sessionId), { type, [field]: text })
  }

  async cancel(sessionId: string, turnId: string): Promise<void> {
    await this.#ask('POST', this.#path('cancel', sessionId, turnId))
  }

  async remove(sessionId: string): Promise<void> {
    await this.#ask('DELETE', `/v1/sessions/${sessionId}`)
  }

  own(method: string, path: string, body?: unknown): Promise<Fields> {
    return this.#ask(method, `/_emulator/${path}`, body)
  }

  async #ask(method: string, path: string, body?: unknown): Promise<Fields> {
    const response = await request(this.url + path, {
      method: method as 'GET',
      reset: true,
      headers: {
        authorization: `Bearer ${USER_TOKEN}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.body.text()
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Fields)
  }

  #path(name: 'message' | 'cancel', sessionId: string, turnId = ''): string {
    return this.details.paths[name].replace('{session_id}', sessionId).replace('{turn_id}', turnId)
  }

  async #kill(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kill()
  }
}
