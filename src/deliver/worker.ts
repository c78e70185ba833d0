import PQueue from 'p-queue'
import type { LaneNews } from '../core/delivery.ts'
import { messageOf } from '../core/errors.ts'
import type { StoredFact } from '../core/fact.ts'
import type { HandlerSpec } from '../core/handler.ts'
import type { Observer } from '../core/observer.ts'
import type { Clock, Log, Random } from '../core/ports.ts'
import { createPump, type Pump } from '../core/pump.ts'
import type { Store } from '../core/store.ts'
import type { Briefs } from './briefs.ts'
import { HandlerHealth, type HandlerStatus, type Pause } from './health.ts'
import { ActiveLane } from './lane.ts'
import { createRecorder } from './record.ts'
import { createReleaser } from './release.ts'
import type { Settler } from './settler.ts'
import type { Target } from './target.ts'
import { createTransients, transientSlots } from './transients.ts'
import { trialOf, type Trial } from './trial.ts'
import { createTurns } from './turn.ts'

/** Lanes in memory, for each place in the handler's concurrency; the others wait in the store. */
const LANES_PER_PLACE = 4
const LANES_LEAST = 64
/** After a failure of our own, a lane goes on so much later, milliseconds. */
const FAILED = 5000

export interface Worker {
  readonly spec: HandlerSpec
  start(): void
  /** Stops claiming and lets what is under way end, for `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  news(news: LaneNews): void
  /** Hands over an event that is not stored. At most once. */
  transient(fact: StoredFact): void
  /** Deliveries became pending again. */
  reload(): void
  /** Hands over a made-up fact, once, whatever state the handler is in. Nothing is stored and nothing is counted. */
  test(fact: StoredFact): Promise<Trial>
  pause(): void
  resume(): void
  status(): HandlerStatus
}

export interface WorkerOptions {
  spec: HandlerSpec
  target: Target
  paused: Pause | null
  store: Store
  settler: Settler
  briefs: Briefs
  observer: Observer
  clock: Clock
  random: Random
  log: Log
}

/**
 * One handler's deliveries. A lane has its head alone in flight; lanes run side by side under the handler's concurrency.
 * When the handler is down its lanes wait in the store and one probe at a time goes on.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { spec, target, store, briefs, clock, log } = options
  const queue = new PQueue({ concurrency: spec.concurrency })
  const lanes = new Map<number, ActiveLane>()
  const room = Math.max(LANES_LEAST, spec.concurrency * LANES_PER_PLACE)
  const closing = new AbortController()
  const stopping = new AbortController()
  const health = new HandlerHealth(spec.name, options.paused, options)
  const recorder = createRecorder(options)
  const releaser = createReleaser({ handler: spec.name, store, clock, log })
  let idle: (() => void) | null = null

  const claim = async (): Promise<void> => {
    if (!pump.running || health.state === 'paused') return
    const now = clock.steady()
    const probing = health.state === 'down'
    const limit = probing ? (now >= health.probeAt && lanes.size === 0 ? 1 : 0) : room - lanes.size
    if (limit <= 0) return
    for (const lane of await store.claimLanes(spec.name, limit, now)) {
      const active = new ActiveLane(store, lane, null)
      active.probe = probing
      activate(active)
    }
  }

  const pump: Pump = createPump({
    clock,
    pass: claim,
    async next() {
      // A full house and a probe are woken by the first lane that ends, a paused one by whoever resumes it.
      if (lanes.size >= room || health.state === 'paused') return null
      if (health.state === 'down' && lanes.size > 0) return null
      const due = await store.nextLane(spec.name)
      return due === null ? null : Math.max(due, health.probeAt)
    },
    onError: (error) => log.error({ handler: spec.name, err: error }, 'deliver: the store could not be read'),
  })

  const turns = createTurns({
    ...options,
    queue,
    health,
    recorder,
    closing: closing.signal,
    stop: stopping.signal,
    mayGoOn: () => mayGoOn(),
    onBack: () => pump.nudge(),
  })

  const transients = createTransients({
    slots: transientSlots(spec.concurrency),
    free: () =>
      pump.running && health.state === 'up' && queue.size === 0 ? spec.concurrency - queue.pending : 0,
    async send(fact) {
      const session = fact.sessionId === null ? null : (briefs.peek(fact.sessionId) ?? null)
      await target.send([{ fact, attempt: 1, session }], stopping.signal)
    },
    onDropped: () => options.observer.transientDropped(spec.name),
    clock,
  })

  const activate = (active: ActiveLane): void => {
    lanes.set(active.lane.id, active)
    void work(active)
  }

  const work = async (active: ActiveLane): Promise<void> => {
    let dueAt: number | undefined
    let empty = true
    try {
      while (mayGoOn() && (await active.fill())) {
        empty = false
        dueAt = await turns.take(active)
        transients.next()
        if (dueAt !== undefined) break
      }
      if (stopping.signal.aborted) return
      await active.settled
      // Claimed at once again, it would leave nobody else a turn: not even the writing down of what is damaged in it.
      if (empty && mayGoOn()) {
        dueAt = clock.steady() + FAILED
        log.warn(
          { handler: spec.name, lane: active.lane.key },
          'deliver: a lane owes nothing that can be read',
        )
      }
    } catch (error) {
      if (stopping.signal.aborted) return
      log.error(
        { handler: spec.name, lane: active.lane.key, err: error },
        'deliver: a lane stopped; it goes on later',
      )
      // What the handler asked for may be longer.
      dueAt = Math.max(dueAt ?? 0, clock.steady() + FAILED)
    }
    await leave(active, dueAt)
  }

  const lanesAreIdle = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (lanes.size === 0) resolve()
    else idle = resolve
    return promise
  }

  const mayGoOn = (): boolean => pump.running && health.state !== 'paused'

  const leave = async (active: ActiveLane, dueAt: number | undefined): Promise<void> => {
    await releaser.release(active.lane, dueAt)
    lanes.delete(active.lane.id)
    if (lanes.size === 0) idle?.()
    pump.nudge()
  }

  return {
    spec,
    start() {
      health.report()
      pump.start()
    },
    async stop(grace) {
      pump.stop()
      releaser.stop()
      closing.abort()
      const { promise: late, resolve: giveUp } = Promise.withResolvers<void>()
      // Who does not answer within the grace is left behind: the callback goes out again after the next start.
      const limit = clock.after(grace, giveUp)
      await Promise.race([Promise.all([lanesAreIdle(), transients.stop()]), late])
      limit.cancel()
      stopping.abort()
    },
    news({ lane, claimed, deliveries }) {
      const active = lanes.get(lane.id)
      if (active !== undefined) active.extend(deliveries)
      else if (!claimed) pump.nudge()
      else if (pump.running && health.state === 'up' && lanes.size < room) {
        activate(new ActiveLane(store, lane, deliveries))
      } else {
        store
          .releaseLane(lane)
          .catch((error: unknown) => log.error({ err: messageOf(error) }, 'deliver: release'))
        if (health.state === 'down') pump.nudge()
      }
    },
    transient(fact) {
      if (pump.running && health.state === 'up') transients.offer(fact)
    },
    async test(fact) {
      const started = clock.steady()
      const batch = [{ fact, attempt: 1, session: null, test: true }]
      const verdict = await target.send(batch, stopping.signal)
      const ms = clock.steady() - started
      log.info(
        { handler: spec.name, type: fact.type, outcome: verdict.kind, ms },
        'handler: tried with a test',
      )
      return trialOf(verdict, ms)
    },
    reload() {
      for (const active of lanes.values()) active.reload()
      pump.nudge()
    },
    pause() {
      health.become('paused', 'paused by an operator')
    },
    resume() {
      if (health.state !== 'paused') return
      health.become('up', null)
      pump.nudge()
    },
    status: () => health.status,
  }
}
