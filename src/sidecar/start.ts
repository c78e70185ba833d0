import type { Address } from './admin/listener.ts'
import { createMetrics } from './admin/metrics.ts'
import { createRelay } from './admin/relay/relay.ts'
import { createAdmin } from './admin/server.ts'
import { createWebhookListener } from './admin/webhooks.ts'
import type { Config } from './config/config.ts'
import { watchSecrets, type SecretChange } from './config/watch.ts'
import { OperatorError } from '../std/errors.ts'
import { Bus } from '../core/bus.ts'
import { CHANNELS, type Channel } from '../core/fact.ts'
import { fanOut, type ChannelStatus, type Observer } from '../core/observer.ts'
import type { Log } from '../std/ports.ts'
import type { Health } from '../core/resource.ts'
import type { Store } from '../core/store.ts'
import { ANY_FUNCTION } from '../core/tool.ts'
import { createService } from '../client/service.ts'
import { endSubscriptions } from './source/subscription.ts'
import { systemClock } from '../system/clock.ts'
import { createHttp } from '../system/http.ts'
import { systemRandom } from '../system/random.ts'
import { loadTracer } from '../system/tracing.ts'
import { adminActions } from './actions.ts'
import { firstContact, keepAsking, onEnd, patiently, warnOfScopes } from './contact.ts'
import { createEngine } from './engine.ts'
import { fingerprint, warnOfDifference } from './fingerprint.ts'
import { shareBudget } from './holds.ts'
import { createMaintenance, createWriteProbe, REPORTED_BY } from './maintain.ts'
import { warnOfBacklogs, warnOfService } from './past.ts'
import type { Secrets } from '../std/signature.ts'
import { declaration, replaceSecrets, type Specs } from './specs.ts'
import { createThroughput, createWrites, disabled, reportStatus } from './status.ts'
import { handlersOf, joinReports, type ChannelReport } from './peers.ts'
import { openStore } from './store.ts'
import { VERSION } from './version.ts'

/** How long a stop waits for deliveries and tools in progress, milliseconds. */
const GRACE = 10_000

export interface Running {
  address: { admin: Address; webhooks: Address | null }
  tools: ReturnType<typeof declaration>
  /** Resolves with the reason when nothing can be stored any more. */
  lost: Promise<OperatorError>
  stop(): Promise<void>
}

/**
 * Starts the parts in order. They stop in reverse order, also when a later part fails to start. When `end` aborts a
 * start, the start does not wait for the service.
 */
export async function startAll(
  config: Config,
  specs: Specs,
  observers: readonly Partial<Observer>[],
  { log, hide, end }: { log: Log; hide: (secret: string) => void; end: AbortSignal },
): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  const clock = systemClock()
  const random = systemRandom()
  const http = createHttp()
  stack.defer(() => http.close())
  const startedAt = clock.now()
  let adminToken = config.admin.token
  const webhookSecrets: Secrets = { current: config.webhooks.secrets }
  let databasePassword = config.store.url.kind === 'postgres' ? config.store.url.password : null
  let health: Health | null = null
  let looked = false
  let draining = false

  let store: Store | null = null
  const configuration = fingerprint(config, specs)
  const metrics = createMetrics({
    build: { version: VERSION, configuration },
    store: () => opened(store).read,
    clock,
    log,
    handlers: specs.handlers.map(({ name }) => name),
    tools: specs.tools.map(({ name }) => name),
    tokenExpiresAt: () => config.service.tokenExpiresAt,
    slotsLimit: () => config.service.sessionSlots,
    tokenAccepted: () => (service.authorized() ? (health === null ? null : true) : false),
    clockOffset: () => service.clockOffset(),
  })
  const lags = new Map<Channel, { seconds: number; at: number }>()
  let webhook: ChannelStatus = config.webhooks.enabled
    ? { ...disabled(startedAt), state: 'live' }
    : disabled(startedAt)
  const own: Partial<Observer> = {
    fact(fact, lag) {
      if (lag === null) return
      for (const channel of CHANNELS)
        if (fact.seen[channel] !== undefined) lags.set(channel, { seconds: lag, at: fact.at })
    },
    subscription(active, problem) {
      const state = active ? 'live' : 'waiting'
      const since = state === webhook.state ? webhook.since : clock.now()
      webhook = { ...webhook, state, since, lastError: problem ?? webhook.lastError }
    },
    webhook(outcome) {
      if (outcome === 'accepted' || outcome === 'duplicate') webhook.lastEventAt = clock.now()
    },
  }
  const throughput = createThroughput(clock)
  const writes = createWrites(clock)
  const relay = config.stream.enabled
    ? createRelay({ store: () => opened(store).read, clock, log, observer: metrics.observer })
    : null
  const observer = fanOut([metrics.observer, own, throughput.observer, writes.observer, ...observers])
  const bus = new Bus()

  /**
   * Resolves when the store is lost: nothing can be stored any more. The next start opens the store that exists then.
   */
  const lost = Promise.withResolvers<OperatorError>()
  let acknowledges = true
  const ports = { clock, log, random, password: () => databasePassword, fingerprint: configuration }
  const opening = await openStore(config, ports, observer, (error) => {
    acknowledges = false
    writes.lose(error)
    log.error({ err: error }, 'store: it is lost; webhooks are answered 503, and this process must end')
    lost.resolve(new OperatorError(`store: ${error.message}.`))
  })
  store = opening
  stack.defer(() => opening.close())

  const service = createService({
    baseUrl: config.service.baseUrl,
    token: config.service.token,
    http,
    clock,
    random,
    log,
    routes: config.service.routes,
    observe: observer.request,
    onRetry: observer.requestRetried,
    onBudget: observer.budget,
  })
  stack.defer(() => service.stop())
  const started = onEnd(end, () => service.stop())

  const engine = createEngine({
    service,
    store: opening,
    http,
    clock,
    random,
    log,
    observer,
    tracer: await loadTracer(random, VERSION),
    handlers: specs.handlers,
    tools: specs.tools,
    source: config.service.baseUrl,
    startFrom: config.stream.startFrom,
    scope: config.scope,
    stream: { enabled: config.stream.enabled },
    polling: config.polling,
    webhooks: {
      enabled: config.webhooks.enabled,
      publicUrl: config.webhooks.publicUrl,
      tolerance: config.webhooks.tolerance,
      secrets: webhookSecrets,
    },
    bus,
  })
  bus.subscribe({ looked: () => void (looked = true) })
  if (relay !== null) {
    bus.subscribe(relay)
    opening.shards.subscribe(relay)
  }
  const budget = shareBudget({ service, store: opening, clock, log })
  stack.defer(() => budget.stop())
  warnOfDifference(opening.shards, log)

  void lost.promise.then(() => engine.webhooks.lose())

  const reported = (channel: Channel, status: ChannelStatus | undefined): ChannelReport => ({
    ...(status ?? disabled(startedAt)),
    lag: lags.get(channel) ?? null,
  })
  const peers = joinReports(opening.shards, () => ({
    channels: {
      stream: reported('stream', engine.stream?.status()),
      webhook: reported('webhook', webhook),
      poll: reported('poll', engine.poll?.status()),
    },
    handlers: engine.dispatcher.statuses(),
    minutes: throughput.report(),
  }))

  const admin = createAdmin({
    listen: config.admin.listen,
    token: () => adminToken,
    store: opening.read,
    summary: (sessionId) => opening.resources.summary(sessionId),
    actions: adminActions(opening, engine, specs, {
      clock,
      random,
      handlers: async () => handlersOf(await peers()),
    }),
    relay,
    status: () =>
      reportStatus({
        version: VERSION,
        startedAt,
        service,
        store: opening.read,
        peers,
        health,
        configured: config.service,
        writes,
        tools: specs.tools,
      }),
    metrics,
    ready: () => ({
      ok: !draining && acknowledges,
      checks: [writes.check(), { name: 'configuration', ok: true }, { name: 'not draining', ok: !draining }],
    }),
    started: () => looked,
    log,
    version: VERSION,
  })
  const adminAddress = await admin.listen()
  stack.defer(() => admin.close())

  await budget.heed()
  health = await firstContact(service, specs.tools, { clock, log })
  service.onAuthorization((authorized) => {
    if (authorized) {
      log.info({}, 'token: the service accepts it again')
      void refreshHealth()
    } else {
      log.error(
        {},
        'token: the service rejected the token (401). No request is sent until service.token_file changes; ' +
          'stored facts are still delivered',
      )
    }
  })
  const refreshHealth = async (): Promise<boolean> => {
    const answer = await service.health().catch(() => null)
    if (answer === null) return false
    health = answer
    warnOfScopes(answer, specs.tools, log)
    return true
  }
  if (health === null) stack.defer(keepAsking(refreshHealth, clock))
  looked ||= health === null

  let webhookAddress: Address | null = null
  if (config.webhooks.enabled) {
    const listener = createWebhookListener({
      listen: config.webhooks.listen,
      path: config.webhooks.path,
      screen: engine.webhooks.screen,
      receive: engine.webhooks.receive,
      observer,
      log,
    })
    webhookAddress = await listener.listen()
    stack.defer(() => listener.close())
  }

  if (engine.subscription === null)
    opening.shards.subscribe({ led: () => void endSubscriptions(service, opening, log) })
  stack.defer(() => engine.stop(GRACE))
  await engine.start()
  if (engine.subscription !== null) await patiently(engine.subscription.start(), clock, log)
  await warnOfService(opening, config.service.baseUrl, log)
  void warnOfBacklogs(opening.read, specs.handlers, log)
  stack.defer(() => {
    draining = true
  })
  const maintenance = createMaintenance({
    store: opening,
    retention: config.store.retention,
    expected: {
      ...(config.stream.enabled ? { stream: REPORTED_BY.stream } : {}),
      ...(config.webhooks.enabled ? { webhook: REPORTED_BY.webhook } : {}),
    },
    mayPrune: () => !engine.reconciler.looksFirst(),
    observer,
    clock,
    log,
  })
  maintenance.start()
  stack.defer(() => maintenance.stop())
  const probe = createWriteProbe({
    store: opening,
    refused: () => writes.report().state === 'refusing',
    clock,
  })
  probe.start()
  stack.defer(() => probe.stop())

  const watch = watchSecrets(config, (change) => takeSecrets(change), {
    clock,
    warn: (text) => log.warn({}, text),
  })
  stack.defer(() => watch.stop())
  const takeSecrets = (change: SecretChange): void => {
    for (const secret of change.secrets) hide(secret)
    const [first] = change.secrets
    log.info({ of: change.of }, 'a secret has changed')
    if (change.of === 'service.token' && first !== undefined) {
      service.setToken(first)
      void budget.heed().then(refreshHealth)
    }
    if (change.of === 'admin.token') adminToken = first ?? null
    if (change.of === 'store.password') databasePassword = first ?? null
    if (change.of === 'webhooks.secrets') webhookSecrets.current = change.secrets
    if (change.of === 'handler' || change.of === 'tool') replaceSecrets(specs, change)
  }

  log.info({ admin: adminAddress, webhooks: webhookAddress, version: VERSION }, 'sidecar: started')
  started()
  const held = stack.move()
  return {
    address: { admin: adminAddress, webhooks: webhookAddress },
    tools: declaration(specs.tools).filter(({ name }) => name !== ANY_FUNCTION),
    lost: lost.promise,
    stop: () => held.disposeAsync(),
  }
}

function opened(store: Store | null): Store {
  if (store === null) throw new Error('the store is not open yet')
  return store
}
