import { createMetrics, type Metrics } from '../../src/sidecar/admin/metrics.ts'
import { Bus } from '../../src/core/bus.ts'
import { FIRST_LOOK, FIRST_START } from '../../src/core/checkpoint.ts'
import { fanOut } from '../../src/core/observer.ts'
import { StoreError } from '../../src/core/store-error.ts'
import type { Store } from '../../src/core/store.ts'
import { plainTracer } from '../../src/core/trace.ts'
import type { HandlerSpec } from '../../src/core/handler.ts'
import type { Clock, Log } from '../../src/std/ports.ts'
import type { ToolSpec } from '../../src/core/tool.ts'
import { DeadLetter } from '../../src/core/errors.ts'
import { createService, type ServiceClient } from '../../src/client/service.ts'
import type { AdminActions } from '../../src/sidecar/admin/actions.ts'
import { adminActions } from '../../src/sidecar/actions.ts'
import { createEngine, type Engine } from '../../src/sidecar/engine.ts'
import { shareBudget } from '../../src/sidecar/holds.ts'
import { createMaintenance, REPORTED_BY } from '../../src/sidecar/maintain.ts'
import { DeliveryRows } from '../../src/sidecar/store/sqlite/lanes.ts'
import { createSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import type { Sqlite } from '../../src/sidecar/store/sqlite/open.ts'
import type { Agenda } from './agenda.ts'
import type { Application } from './application.ts'
import { Chance } from './chance.ts'
import { noteClaims } from './claims.ts'
import { clockOf, type WallClock } from './clock.ts'
import { counting } from './counts.ts'
import { Disk } from './disk.ts'
import type { Life } from './life.ts'
import { APP, SERVICE, type Network } from './network.ts'
import { HANDLER_KEY, THROWN } from './oracle/secrets.ts'
import type { Watch } from './oracle/watch.ts'
import { scopeOf } from './scope.ts'
import { TOOLS, type HandlerPlan, type Scenario } from './scenario.ts'
import { Face, type SharedStore } from './replicas.ts'
import type { Passages } from './sites.ts'
import { storeOf } from './store.ts'
import { noteCommits } from './expected.ts'

/** Attempts after which a delivery is dead. */
export const ATTEMPTS = 5
export const WEBHOOK_URL = 'https://app.test/webhooks'
export const FIXED_ERROR = 'The tool could not complete this request.'
/** In one seed of so many the metrics are there, too: they cost more than they find. */
const METERED = 8

export interface Running {
  engine: Engine
  /** For callers of the admin API. */
  store: Pick<Store, 'settings'>
  service: ServiceClient
  admin: AdminActions
  /** Ends what is not the engine's. */
  stop(): void
  /** Leaves the store. */
  close(): Promise<void>
  /** Settles when the start is through; fails when it failed. */
  started: Promise<void>
}

export interface SidecarParts {
  agenda: Agenda
  sites: Passages
  wall: WallClock
  network: Network
  app: Application
  watch: Watch
  db: Sqlite
  /** Several processes have it; null: this one alone. */
  shared: SharedStore | null
  scenario: Scenario
  token: string
  log: Log
  /** It has written when the sidecar first started. */
  onFirstStart: () => void
  /** It has written that its first look is complete. */
  onFirstLook: () => void
  /** Another process has taken the store. */
  onLost: (life: Life) => void
  /** It leads several processes now. */
  onLed: () => void
  seed: number
}

/** So few that a seed comes to the rows of older deliveries. */
const FRESH = 6

/** Starts the real sidecar, less its sockets and files, as one life. */
export function startSidecar(life: Life, parts: SidecarParts): Running {
  const { agenda, sites, wall, network, app, watch, scenario, log } = parts
  const disk = new Disk(life, agenda, new Chance(parts.seed, `disk ${life.number}`))
  const clock = clockOf(life, agenda, wall, sites, disk)
  const random = new Chance(parts.seed, `life ${life.number}`)
  const { db } = parts
  const options = { clock, log, onCommit: () => watch.committed(life), onLost: () => parts.onLost(life) }
  const face =
    parts.shared === null ? null : new Face(parts.shared, { number: life.number, life, sites, ...options })
  life.face = face
  if (face?.isCut === true || parts.shared?.isOverloaded === true) life.disturbed = 'by an outage'
  if (face !== null) life.atEnd(() => face.drop())
  const inner = face?.store ?? createSqliteStore(db, options, undefined, new DeliveryRows(db, FRESH))
  if (parts.seed % METERED === 0) life.metrics = metricsOf(inner, scenario, clock, log)
  const observer = fanOut([counting(life.counts), life.metrics?.observer ?? {}])
  const stored = storeOf(life, inner, sites, disk, {
    stored: (batch, committed) => watch.stored(life, batch, committed),
    pruned: (age) => watch.pruned(clock.now() - age),
    paused: (handler, reason) => watch.paused(handler, reason),
    noted(checkpoint, value) {
      watch.beginning.noted(life, checkpoint, value)
      if (checkpoint === FIRST_START) parts.onFirstStart()
      if (checkpoint === FIRST_LOOK) parts.onFirstLook()
    },
    looked: () => watch.looked(life),
    ...(face === null
      ? {}
      : {
          unknown: () => unknown(face, life),
          async forgotten(committed) {
            face.forget(committed)
            await unknown(face, life)
            throw new StoreError('unreachable')
          },
        }),
  })
  const store = noteClaims(noteCommits(stored, life.counts), life.claims)
  const http = network.portOf(life)
  const service = createService({ baseUrl: SERVICE, token: parts.token, http, clock, random, log })
  const { channels, upkeep } = scenario
  const specs = {
    handlers: scenario.handlers.map((plan) => handlerOf(plan, life, app)),
    tools: TOOLS.map((name) => toolOf(name, life, app)),
  }
  const bus = new Bus()
  const engine = createEngine({
    service,
    store,
    http,
    clock,
    random,
    log,
    tracer: plainTracer(random),
    observer,
    ...specs,
    source: SERVICE,
    startFrom: scenario.startFrom,
    scope: scopeOf(scenario.scope, life.number),
    stream: { enabled: channels.stream },
    polling: { enabled: channels.poll, interval: 10_000, sweep: 60_000 },
    webhooks: {
      enabled: channels.webhook,
      publicUrl: channels.webhook ? WEBHOOK_URL : null,
      secrets: { current: [] },
      tolerance: 300_000,
    },
    bus,
  })
  const budget = face === null ? null : shareBudget({ service, store, clock, log })
  const expected = {
    ...(channels.stream ? { stream: REPORTED_BY.stream } : {}),
    ...(channels.webhook ? { webhook: REPORTED_BY.webhook } : {}),
  }
  const mayPrune = (): boolean => !engine.reconciler.looksFirst()
  const maintenance =
    upkeep === null ? null : createMaintenance({ ...upkeep, store, expected, mayPrune, observer, clock, log })
  const start = async (): Promise<void> => {
    await face?.begin()
    if (face !== null) face.store.shards.subscribe({ led: parts.onLed })
    await budget?.heed()
    // As the program does: a token that is rejected at once is fatal, an unreachable service is
    // not.
    await service.health().catch((error: unknown) => {
      if (error instanceof Error && 'status' in error && error.status === 401) throw error
    })
    await service.discover()
    await engine.start()
    await engine.subscription?.start()
    maintenance?.start()
  }
  const handlers = async () => engine.dispatcher.statuses()
  const admin = adminActions(store, engine, specs, { clock, random, handlers })
  const close = async (): Promise<void> => face?.leave()
  const stop = (): void => {
    maintenance?.stop()
    budget?.stop()
  }
  return { engine, store: inner, service, admin, stop, close, started: start() }
}

/** A connection breaks with its COMMIT: the process asks what became of it until it reaches the database. */
async function unknown(face: Face, life: Life): Promise<void> {
  life.disturbed = 'alone'
  await face.loseReply()
}

function metricsOf(store: Store, { handlers }: Scenario, clock: Clock, log: Log): Metrics {
  return createMetrics({
    build: { version: '0', configuration: '0f' },
    store: () => store.read,
    clock,
    log,
    handlers: handlers.map(({ name }) => name),
    tools: TOOLS,
    tokenExpiresAt: () => null,
  })
}

function handlerOf(plan: HandlerPlan, life: Life, app: Application): HandlerSpec {
  const base = {
    name: plan.name,
    events: plan.events,
    format: plan.format,
    ordered: plan.ordered,
    concurrency: 4,
    batch: { max: plan.batch, wait: plan.batch > 1 ? 20 : 0 },
    timeout: 2000,
    retry: { attempts: ATTEMPTS, base: 200, max: 3000 },
  }
  if (plan.kind === 'http') {
    return {
      ...base,
      target: {
        kind: 'http',
        url: `${APP}/handlers/${plan.name}`,
        secrets: { current: [`whsec_${HANDLER_KEY}`] },
      },
    }
  }
  return {
    ...base,
    target: {
      kind: 'module',
      handle: (event) =>
        new Promise<void>((resolve, reject) => {
          if (life.replaced) return
          app.call(plan.name, event, life, (fault) => {
            if (fault === 'error') reject(new Error(THROWN))
            else if (fault === 'verdict_dead') reject(new DeadLetter('no use'))
            else resolve()
          })
        }),
    },
  }
}

function toolOf(name: string, life: Life, app: Application): ToolSpec {
  return {
    name,
    description: name,
    parameters: { type: 'object' },
    target:
      name === 'inside'
        ? {
            kind: 'module',
            run: ({ callId }) =>
              new Promise((resolve, reject) => {
                if (life.replaced) return
                app.run(callId, life, (output) => {
                  if (output === null) reject(new Error(THROWN))
                  else resolve({ kind: 'output', output })
                })
              }),
          }
        : { kind: 'http', url: `${APP}/tools/${name}`, secrets: { current: [`whsec_${HANDLER_KEY}`] } },
    timeout: 3000,
    concurrency: 2,
    retry: { attempts: 3, base: 100, max: 1000 },
    afterCrash: name === 'charge' ? 'fail' : 'retry',
    error: FIXED_ERROR,
    deadline: null,
    onNotDelivered: name === 'later' ? 'report' : 'resend',
  }
}
