import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ActionRefused, type AdminActions } from './admin/actions.ts'
import { createMetrics } from './admin/metrics.ts'
import { createAdmin } from './admin/server.ts'
import { createWebhookListener } from './admin/webhooks.ts'
import type { Config } from './config/config.ts'
import { loadConfig, resolveConfig } from './config/load.ts'
import type { ConfigInput } from './config/schema.ts'
import { renderFault } from './config/fault.ts'
import { watchSecrets, type SecretChange } from './config/watch.ts'
import type { Channel } from './core/fact.ts'
import { OperatorError, ServiceError, messageOf } from './core/errors.ts'
import type { ModuleHandler } from './core/handler.ts'
import { fanOut, type ChannelStatus, type Observer } from './core/observer.ts'
import type { Log } from './core/ports.ts'
import type { Health } from './core/resource.ts'
import type { Store } from './core/store.ts'
import type { EventHandler } from './library/events.ts'
import { createRouter } from './library/handlers.ts'
import type { ToolDefinition } from './library/tool.ts'
import { createService, type ServiceClient } from './service/client.ts'
import { createEngine, type Engine } from './sidecar/engine.ts'
import { asLog, createLogger } from './sidecar/logger.ts'
import { createMaintenance, TELLS } from './sidecar/maintain.ts'
import { routeOverrides } from './sidecar/routes.ts'
import { declaration, loadSpecs, type Specs } from './sidecar/specs.ts'
import { disabled, reportStatus } from './sidecar/status.ts'
import { openSqliteStore } from './store/sqlite/store.ts'
import { systemClock } from './system/clock.ts'
import { undiciHttp } from './system/http.ts'
import { systemRandom } from './system/random.ts'

export interface SidecarOptions {
  /** A file, or the same keys as an object. */
  config: string | ConfigInput
  /** For `${VAR}` and `SIDECAR_…`; default: the process's own with a file, none with an object. */
  env?: Readonly<Record<string, string | undefined>>
  /** Where the log goes. Default: standard error, as the configuration says. */
  log?: Log
}

/** A sidecar in this process (product.md, Library). */
export interface Sidecar {
  /** Calls `handler` for facts of a type, of a family (`turn.*`) or all (`*`). Before `start`. */
  on<Type extends string>(type: Type, handler: EventHandler<Type>): Sidecar
  /** Adds a function tool. Before `start`. */
  tool(definition: ToolDefinition): Sidecar
  /** Tells `observer` what happens. Before `start`. */
  observe(observer: Partial<Observer>): Sidecar
  /**
   * Opens the store and the listeners, and follows the service.
   * @throws {OperatorError} with exit code 3 when the service rejects the token, 1 or 2 when something cannot be used.
   */
  start(): Promise<void>
  /** Stops claiming, lets what is under way end, closes. Safe to call again. */
  stop(): Promise<void>
  /** Where the listeners are, once started. */
  readonly address: { admin: Address | null; webhooks: Address | null }
  /** The `tools` array to declare on a session. Once started. */
  tools(): { type: 'function'; name: string; description: string; parameters: unknown }[]
}

export interface Address {
  host: string
  port: number
}

/** What deliveries and tools under way may take when we stop, milliseconds. */
const GRACE = 10_000

const VERSION = readVersion()

/**
 * Loads the configuration; nothing is opened before `start`.
 * @throws {ConfigError} with every fault at once.
 */
export async function createSidecar(options: SidecarOptions): Promise<Sidecar> {
  const loaded =
    typeof options.config === 'string'
      ? await loadConfig(options.config, options.env ?? process.env, Date.now())
      : await resolveConfig(options.config, { env: options.env ?? {}, now: Date.now() })
  const { config, warnings } = loaded
  const secrets = new Set(secretsOf(config))
  const log = options.log ?? asLog(createLogger(config.log, () => [...secrets]))
  const router = createRouter()
  const tools: ToolDefinition[] = []
  const observers: Partial<Observer>[] = []
  let running: Running | null = null
  let starting = false

  const sidecar: Sidecar = {
    on(type, handler) {
      router.on(type, handler as unknown as ModuleHandler)
      return sidecar
    },
    tool(definition) {
      tools.push(definition)
      return sidecar
    },
    observe(observer) {
      observers.push(observer)
      return sidecar
    },
    async start() {
      if (starting) throw new OperatorError('this sidecar was started already')
      starting = true
      for (const warning of warnings) log.warn({}, renderFault(warning))
      const specs = await loadSpecs(config, { events: router.events(), handle: router.handle, tools })
      running = await startAll(config, specs, observers, log, (secret) => secrets.add(secret))
    },
    async stop() {
      const stopped = running
      running = null
      await stopped?.stop()
    },
    get address() {
      return running?.address ?? { admin: null, webhooks: null }
    },
    tools: () => running?.tools ?? [],
  }
  return sidecar
}

interface Running {
  address: Sidecar['address']
  tools: ReturnType<typeof declaration>
  stop(): Promise<void>
}

/** Starts the parts in order; what was started stops in reverse, also when a later one fails. */
async function startAll(
  config: Config,
  specs: Specs,
  observers: readonly Partial<Observer>[],
  log: Log,
  hide: (secret: string) => void,
): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  const clock = systemClock()
  const random = systemRandom()
  const http = undiciHttp()
  stack.defer(() => http.close())
  const startedAt = clock.now()
  let adminToken = config.admin.token
  let webhookSecrets: readonly string[] = config.webhooks.secrets
  let health: Health | null = null
  let looked = false
  let draining = false

  let store: Store | null = null
  const metrics = createMetrics({
    version: VERSION,
    store: () => opened(store).read,
    clock,
    log,
    handlers: specs.handlers.map(({ name }) => name),
    tools: specs.tools.map(({ name }) => name),
    tokenExpiresAt: () => config.service.tokenExpiresAt,
    leader: () => true,
  })
  const lags = new Map<Channel, number>()
  let webhook: ChannelStatus = config.webhooks.enabled
    ? { ...disabled(startedAt), state: 'live' }
    : disabled(startedAt)
  const own: Partial<Observer> = {
    fact(fact, lag) {
      if (lag === null) return
      for (const channel of Object.keys(fact.seen) as Channel[]) lags.set(channel, lag)
    },
    webhook(outcome) {
      if (outcome === 'accepted' || outcome === 'duplicate') webhook = { ...webhook, lastEventAt: clock.now() }
    },
  }
  const observer = fanOut([metrics.observer, own, ...observers])

  const opening = openStore(config, clock, log, observer)
  store = opening
  stack.defer(() => opening.close())

  const service = createService({
    baseUrl: config.service.baseUrl,
    token: config.service.token,
    http,
    clock,
    random,
    log,
    routes: routeOverrides(config.service.routes),
    observe: (seen) => observer.request(seen),
    onRetry: (code) => observer.requestRetried(code),
    onBudget: (bucket, remaining) => observer.budget(bucket, remaining),
  })
  stack.defer(() => service.stop())

  const engine = createEngine({
    service,
    store: opening,
    http,
    clock,
    random,
    log,
    observer,
    handlers: specs.handlers,
    tools: specs.tools,
    source: config.service.baseUrl,
    startFrom: config.stream.startFrom,
    stream: { enabled: config.stream.enabled },
    polling: config.polling,
    webhooks: {
      enabled: config.webhooks.enabled,
      publicUrl: config.webhooks.publicUrl,
      tolerance: config.webhooks.tolerance,
      secrets: () => webhookSecrets,
    },
    onFirstLook: () => {
      looked = true
    },
  })

  const admin = createAdmin({
    listen: config.admin.listen,
    token: () => adminToken,
    store: opening.read,
    actions: adminActions(opening, engine, specs),
    status: () =>
      reportStatus({
        version: VERSION,
        startedAt,
        service,
        engine,
        store: opening.read,
        webhook,
        lag: (channel) => lags.get(channel) ?? null,
        health,
        tokenExpiresAt: config.service.tokenExpiresAt,
      }),
    metrics,
    ready: () => ({
      ok: !draining,
      checks: [
        { name: 'store', ok: true },
        { name: 'configuration', ok: true },
        { name: 'draining', ok: !draining },
      ],
    }),
    started: () => looked,
    log,
    version: VERSION,
  })
  const adminAddress = await admin.listen()
  stack.defer(() => admin.close())

  health = await firstContact(service, log)
  looked ||= health === null

  let webhookAddress: Address | null = null
  if (config.webhooks.enabled) {
    const listener = createWebhookListener({
      listen: config.webhooks.listen,
      path: config.webhooks.path,
      receive: engine.receiveWebhook,
      log,
    })
    webhookAddress = await listener.listen()
    stack.defer(() => listener.close())
  }

  await engine.start()
  stack.defer(() => engine.stop(GRACE))
  stack.defer(() => {
    draining = true
  })
  const maintenance = createMaintenance({
    store: opening,
    retention: config.store.retention,
    expected: {
      ...(config.stream.enabled ? { stream: TELLS.stream } : {}),
      ...(config.webhooks.enabled ? { webhook: TELLS.webhook } : {}),
    },
    observer,
    clock,
    log,
  })
  maintenance.start()
  stack.defer(() => maintenance.stop())

  const watch = watchSecrets(config, (change) => takeSecrets(change), { clock, warn: (text) => log.warn({}, text) })
  stack.defer(() => watch.stop())
  const takeSecrets = (change: SecretChange): void => {
    for (const secret of change.secrets) hide(secret)
    const [first] = change.secrets
    log.info({ of: change.of }, 'a secret has changed')
    if (change.of === 'service.token' && first !== undefined) service.setToken(first)
    if (change.of === 'admin.token') adminToken = first ?? null
    if (change.of === 'webhooks.secrets') webhookSecrets = change.secrets
    if (change.of === 'handler' || change.of === 'tool') replaceSecrets(specs, change)
  }

  log.info({ admin: adminAddress, webhooks: webhookAddress, version: VERSION }, 'sidecar: started')
  const held = stack.move()
  return {
    address: { admin: adminAddress, webhooks: webhookAddress },
    tools: declaration(specs.tools),
    stop: () => held.disposeAsync(),
  }
}

function openStore(config: Config, clock: ReturnType<typeof systemClock>, log: Log, observer: Observer): Store {
  const { url } = config.store
  if (url.kind === 'postgres') {
    throw new OperatorError('store.url: this version keeps its store in SQLite; use sqlite:FILE', 2)
  }
  return openSqliteStore({ path: url.path, clock, log, onCommit: (seconds) => observer.commit(seconds) })
}

function opened(store: Store | null): Store {
  if (store === null) throw new Error('the store is not open yet')
  return store
}

/** @throws {OperatorError} exit code 3 when the token is rejected. A service that is away is none of that. */
async function firstContact(service: ServiceClient, log: Log): Promise<Health | null> {
  try {
    const health = await service.health()
    if (!health.usable) {
      log.error({ missing: health.missingScopes }, 'the token cannot be used: mint one with the scopes named')
    }
    return health
  } catch (error) {
    if (error instanceof ServiceError && error.unauthorized) {
      throw new OperatorError(
        'the service rejected the token (401). Mint a new one and give it in service.token or service.token_file.',
        3,
      )
    }
    log.warn({ error: messageOf(error) }, 'the service cannot be reached yet; going on, and trying again')
    return null
  }
}

function adminActions(store: Store, engine: Engine, specs: Specs): AdminActions {
  const known = (name: string): void => {
    if (engine.dispatcher.worker(name) === undefined) {
      throw new ActionRefused('not_found', `there is no handler ${name}`)
    }
  }
  return {
    async retryDelivery(id) {
      const { count } = await store.retry({ id })
      engine.dispatcher.reload()
      return { count }
    },
    async retryDeliveries(selection) {
      if (selection.handler !== undefined) known(selection.handler)
      const { count } = await store.retry(selection)
      if (selection.dryRun !== true) engine.dispatcher.reload()
      return { count }
    },
    async replay({ handler, from }) {
      known(handler)
      const { count } = await store.replay(handler, from)
      engine.dispatcher.reload()
      return { count }
    },
    async pauseHandler(name) {
      known(name)
      await store.pauseHandler(name, 'paused by an operator')
      engine.dispatcher.worker(name)?.pause()
    },
    async resumeHandler(name) {
      known(name)
      await store.pauseHandler(name, null)
      engine.dispatcher.worker(name)?.resume()
    },
    async answerCall(callId, answer) {
      const outcome = await engine.tools.answer(callId, answer)
      if (outcome === 'not_found') throw new ActionRefused('not_found', `there is no call ${callId}`)
      if (outcome === 'conflict') throw new ActionRefused('conflict', `call ${callId} does not wait for an answer`)
    },
    tools: () => declaration(specs.tools),
    handlers: () => engine.dispatcher.statuses(),
  }
}

/** Targets hold the array itself, so that a rotated secret counts from the next callback on. */
function replaceSecrets(specs: Specs, change: Extract<SecretChange, { of: 'handler' | 'tool' }>): void {
  const list = change.of === 'handler' ? specs.handlers : specs.tools
  const target = list.find(({ name }) => name === change.name)?.target
  if (target?.kind === 'http') target.secrets.splice(0, target.secrets.length, ...change.secrets)
}

function secretsOf(config: Config): string[] {
  const targets = [...config.handlers, ...config.tools].flatMap(({ target }) =>
    target.kind === 'http' ? target.secrets : [],
  )
  return [config.service.token, ...(config.admin.token === null ? [] : [config.admin.token]), ...config.webhooks.secrets, ...targets]
}

function readVersion(): string {
  const file = fileURLToPath(new URL('../package.json', import.meta.url))
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : 'unknown'
}
