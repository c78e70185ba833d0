import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { request } from 'undici'
import { startEmulator, type Emulator, type EmulatorOptions } from '../../src/emulator/index.ts'
import type { ConfigInput, Sidecar } from '../../src/index.ts'
import { App, SECRET, type Fields } from './app.ts'
import { Client, type ProfileName } from './client.ts'
import { Gateway } from './gateway.ts'
import { freePort } from './listen.ts'
import { openDatabase } from './postgres.ts'
import { asProcess, inProcess, type ProcessOptions, type Program } from './program.ts'
import { ENGINE } from './full.ts'
import { openTables } from './tables.ts'
import { until } from './until.ts'

export type ChannelName = 'stream' | 'webhook' | 'poll'
export const ALL_CHANNELS: readonly ChannelName[] = ['stream', 'webhook', 'poll']

type Handler = NonNullable<ConfigInput['handlers']>[number]
type Tool = NonNullable<ConfigInput['tools']>[number]

export interface RigOptions {
  details?: ProfileName
  emulator?: Omit<EmulatorOptions, 'openDetails'>
  channels?: readonly ChannelName[]
  /** Laid over the one handler `app`, which takes everything. */
  handler?: Partial<Handler>
  /** In place of the one handler. */
  handlers?: (app: App) => Handler[]
  /** Each over HTTP to the app, which answers by what `app.run` says. */
  tools?: Record<string, Partial<Tool>>
  /** Laid over the configuration, section by section. */
  config?: Partial<ConfigInput>
  /** Functions of the library; only in this process. */
  prepare?: (sidecar: Sidecar) => void
  /** The real binary instead of a sidecar in this process. */
  process?: boolean | ProcessOptions
  /** False: the test starts it. */
  start?: boolean
  /** Follows the service of another rig, with an application and a store of its own. */
  beside?: Rig
}

/** Short waits, so that tests need not wait; the larger figures of the interface are the emulator's own tests'. */
const QUICK = { retryMs: 100, streamSlotMs: 50 } as const

/** A service, an application and a sidecar between them, all on loopback. */
export class Rig implements AsyncDisposable {
  readonly emulator: Emulator
  readonly app: App
  readonly client: Client
  /** Stands between the sidecar and the service. */
  readonly gateway: Gateway
  readonly folder: string
  /** The sidecar's token; `id` to revoke it. */
  readonly token: { id: string; token: string }
  readonly profile: ProfileName
  /** What the next start uses. */
  config: ConfigInput
  program: Program | null = null
  readonly #options: RigOptions

  private constructor(
    options: RigOptions,
    parts: Pick<Rig, 'emulator' | 'app' | 'gateway' | 'folder' | 'token'>,
    config: ConfigInput,
  ) {
    this.#options = options
    this.profile = options.beside?.profile ?? options.details ?? 'a'
    this.emulator = parts.emulator
    this.app = parts.app
    this.gateway = parts.gateway
    this.folder = parts.folder
    this.token = parts.token
    this.client = new Client(parts.emulator, this.profile)
    this.config = config
  }

  static async open(options: RigOptions = {}): Promise<Rig> {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(path.join(tmpdir(), 'sidecar-e2e-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const emulator = options.beside?.emulator ?? (await emulatorOf(options))
    if (options.beside === undefined) stack.defer(() => emulator.close())
    const app = stack.use(await App.start())
    const gateway = stack.use(await Gateway.start(emulator.baseUrl))
    const token = emulator.mintToken(['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'])
    const store = options.config?.store?.url === undefined ? await storeFor(stack, folder) : { url: '' }
    const config = await configOf(options, { app, gateway, store, token: token.token })
    const rig = new Rig(options, { emulator, app, gateway, folder, token }, config)
    rig.#stack = stack.move()
    try {
      if (options.start !== false) await rig.start()
    } catch (error) {
      await rig[Symbol.asyncDispose]()
      throw error
    }
    return rig
  }

  #looked = false
  #stack = new AsyncDisposableStack()

  /** Starts the sidecar; with the store on disk, where the last one ended. On an empty store it waits for the first look. */
  async start(): Promise<void> {
    const { process = false, prepare } = this.#options
    this.program =
      process === false
        ? await inProcess(this.config, prepare)
        : await asProcess(this.config, this.folder, process === true ? {} : process)
    const { start_from = 'now' } = this.config.stream ?? {}
    if (!this.#looked && start_from === 'now') {
      await until('first look', async () => (await this.raw('GET', '/startupz')).status === 200)
    }
    this.#looked = true
    if (this.config.stream?.enabled === true) {
      await until('open stream', async () => (await this.channel('stream')).state !== 'connecting')
    }
  }

  async stop(): Promise<void> {
    const { program } = this
    this.program = null
    await program?.stop()
  }

  async kill(): Promise<void> {
    const { program } = this
    this.program = null
    await program?.kill()
  }

  async raw(method: string, path: string, body?: unknown): Promise<{ status: number; body: Fields }> {
    if (this.program === null) throw new Error('no sidecar runs')
    const response = await request(this.program.admin + path, {
      method: method as 'GET',
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const text = await response.body.text()
    const json = String(response.headers['content-type'] ?? '').includes('json')
    return { status: response.statusCode, body: json ? (JSON.parse(text) as Fields) : { text } }
  }

  /** The admin API; fails on anything but 2xx. */
  async admin(method: string, path: string, body?: unknown): Promise<Fields> {
    const reply = await this.raw(method, path, body)
    if (reply.status >= 300)
      throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  /** All pages of a list of the admin API. */
  async list(path: string): Promise<Fields[]> {
    const rows: Fields[] = []
    let after = ''
    for (;;) {
      const page = await this.admin('GET', `${path}${path.includes('?') ? '&' : '?'}limit=100${after}`)
      rows.push(...(page['data'] as Fields[]))
      if (page['has_more'] !== true) return rows
      after = `&after=${encodeURIComponent(String(page['last_id']))}`
    }
  }

  /** The rows of a table of the store, seen from outside. */
  async count(table: string): Promise<number> {
    const tables = await openTables(String(this.config.store?.url))
    try {
      return Number(await tables.value(`SELECT count(*) FROM ${table}`))
    } finally {
      await tables.close()
    }
  }

  async channel(name: ChannelName): Promise<Fields> {
    const { channels } = await this.admin('GET', '/api/status')
    return (channels as Record<string, Fields>)[name] ?? {}
  }

  /** Waits for an event that a handler has taken. */
  async event(
    type: string,
    of: (event: ReturnType<App['delivered']>[number]) => boolean = () => true,
    handler = 'app',
  ) {
    return await until(`${type} at ${handler}`, () =>
      this.app.delivered(handler).find((event) => event.type === type && of(event)),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop()
    } finally {
      await this.#stack.disposeAsync()
    }
  }
}

/** An empty store on the engine under test, removed at the end of `stack`. */
export async function storeFor(stack: AsyncDisposableStack, folder: string): Promise<{ url: string }> {
  if (ENGINE === 'SQLite') return { url: `sqlite:${folder}/sidecar.db` }
  const { url, drop } = await openDatabase()
  stack.defer(drop)
  return { url }
}

function emulatorOf({ details = 'a', emulator = {} }: RigOptions): Promise<Emulator> {
  return startEmulator({
    openDetails: details,
    allowHttpWebhooks: true,
    ...emulator,
    limits: { ...QUICK, ...emulator.limits },
  })
}

async function configOf(
  options: RigOptions,
  { app, gateway, store, token }: { app: App; gateway: Gateway; store: { url: string }; token: string },
): Promise<ConfigInput> {
  const { channels = ALL_CHANNELS, config = {} } = options
  const webhookPort = channels.includes('webhook') ? await freePort() : 0
  const handler: Handler = {
    name: 'app',
    url: app.handlerUrl('app'),
    secret: SECRET,
    timeout: '2s',
    retry: { attempts: 5, base: '20ms', max: '100ms' },
    ...options.handler,
  }
  return {
    ...config,
    service: { base_url: gateway.url, token, ...config.service },
    store: { ...store, ...config.store },
    stream: { enabled: channels.includes('stream'), ...config.stream },
    webhooks: {
      enabled: channels.includes('webhook'),
      ...(channels.includes('webhook')
        ? { listen: `127.0.0.1:${webhookPort}`, public_url: `http://127.0.0.1:${webhookPort}/webhooks` }
        : {}),
      ...config.webhooks,
    },
    polling: { enabled: channels.includes('poll'), interval: '100ms', sweep: '1s', ...config.polling },
    handlers: options.handlers?.(app) ?? [handler],
    tools: Object.entries(options.tools ?? {}).map(([name, more]) => ({
      name,
      ...(more.module === undefined
        ? { url: app.toolUrl(name === '*' ? '{name}' : name), secret: SECRET }
        : {}),
      timeout: '2s',
      retry: { attempts: 3, base: '20ms', max: '100ms' },
      ...more,
    })),
    admin: { listen: '127.0.0.1:0', ...config.admin },
    log: { level: 'silent' },
  }
}
