import { request } from 'undici'
import type { Emulator } from '../../src/emulator/index.ts'
import { profileA } from '../../src/emulator/profile/a.ts'
import { profileB } from '../../src/emulator/profile/b.ts'
import type { OpenDetails } from '../../src/emulator/profile/details.ts'
import type { Fields } from './app.ts'
import type { ProfileName } from './full.ts'
import { until } from './until.ts'

export { PROFILES, type ProfileName } from './full.ts'

/** A client of the service: makes sessions, sends messages, cancels and deletes, in the words of the profile. */
export class Client {
  readonly #emulator: Emulator
  readonly details: OpenDetails
  /** Its own, so that what it spends and what the sidecar spends are apart. */
  readonly token: { id: string; token: string }

  constructor(emulator: Emulator, profile: ProfileName) {
    this.#emulator = emulator
    this.details = profile === 'a' ? profileA : profileB
    this.token = emulator.mintToken(['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'])
  }

  /** How the paths end that answers are posted to. */
  get answerEnding(): string {
    return this.details.paths.answer.replace(/^.*\}/, '')
  }

  /** Whether an address is that of answers. */
  answers(url: string | undefined): boolean {
    return url?.endsWith(this.answerEnding) === true
  }

  async create(body: Fields = {}): Promise<string> {
    const { id } = await this.call('POST', '/v1/sessions', body)
    return String(id)
  }

  /** Declares function tools with these names on a new session; a number is the deadline in seconds. */
  async withTools(tools: Record<string, number | null>, body: Fields = {}): Promise<string> {
    const declared = Object.entries(tools).map(([name, seconds]) => ({
      type: 'function',
      name,
      description: name,
      parameters: { type: 'object' },
      ...(seconds === null ? {} : { timeout_seconds: seconds }),
    }))
    return await this.create({ agent: { tools: declared }, ...body })
  }

  /** Each argument is a line of the scripted agent's language. */
  async send(sessionId: string, ...lines: string[]): Promise<void> {
    const [type, field] = this.details.name === 'a' ? ['input.message', 'text'] : ['user_message', 'content']
    await this.call('POST', this.#path('message', sessionId), { type, [field]: lines.join('\n') })
  }

  /** Creates a session and sends it a message. */
  async start(...lines: string[]): Promise<string> {
    const id = await this.create()
    await this.send(id, ...lines)
    return id
  }

  async cancel(sessionId: string): Promise<void> {
    const turn = await until('running turn', () =>
      this.#emulator
        .ledger()
        .turns.find(({ session_id, status }) => session_id === sessionId && status === 'working'),
    )
    await this.call('POST', this.#path('cancel', sessionId, turn.id))
  }

  /** Answers a call as another sidecar might. */
  async answer(sessionId: string, callId: string, output: string): Promise<void> {
    await this.call('POST', this.#path('answer', sessionId), { call_id: callId, output })
  }

  async remove(sessionId: string): Promise<void> {
    await this.call('DELETE', `/v1/sessions/${sessionId}`)
  }

  /** Waits until the emulator says that the session is in `status`, with its last turn's artifacts final. */
  async reached(sessionId: string, status: string): Promise<void> {
    await until(`session that is ${status}`, () => {
      const { sessions, turns } = this.#emulator.ledger(Number.MAX_SAFE_INTEGER)
      const session = sessions.find(({ id }) => id === sessionId)
      const pending = turns.some((turn) => turn.session_id === sessionId && turn.artifacts === 'pending')
      return session?.status === status && !pending
    })
  }

  /** Waits until the session waits for something, and gives its entries. */
  async required(sessionId: string, count = 1): Promise<{ call_id: string; name: string; type: string }[]> {
    return await until('required action', () => {
      const open = this.#emulator
        .ledger(Number.MAX_SAFE_INTEGER)
        .actions.filter((action) => action.session_id === sessionId && action.resolved_at === null)
      return open.length >= count ? open : undefined
    })
  }

  async call(method: string, path: string, body?: unknown): Promise<Fields> {
    const response = await request(this.#emulator.baseUrl + path, {
      method: method as 'GET',
      headers: {
        authorization: `Bearer ${this.token.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.body.text()
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Fields)
  }

  #path(name: 'message' | 'cancel' | 'answer', sessionId: string, turnId = ''): string {
    return this.details.paths[name].replace('{session_id}', sessionId).replace('{turn_id}', turnId)
  }
}
