import PQueue from 'p-queue'
import { backoff } from '../core/backoff.ts'
import type { Attempt, LaneNews, PendingDelivery } from '../core/delivery.ts'
import { messageOf } from '../core/errors.ts'
import type { StoredFact } from '../core/fact.ts'
import type { HandlerSpec } from '../core/handler.ts'
import type { CallbackOutcome, HandlerState, Observer } from '../core/observer.ts'
import type { Clock, Log, Random, Timer } from '../core/ports.ts'
import type { SessionBrief } from '../core/resource.ts'
import type { Store } from '../core/store.ts'
import type { Briefs } from './briefs.ts'
import { ActiveLane } from './lane.ts'
import type { Settler } from './settler.ts'
import type { Outgoing, Target } from './target.ts'
import { attemptOf, type Verdict } from './verdict.ts'

/** Lanes in memory, for each place in the handler's concurrency; the others wait in the store. */
const LANES_PER_PLACE = 4
const LANES_LEAST = 64
/** A nudge makes the dispatcher prompt, this timer makes it certain, milliseconds. */
const IDLE_LOOK = 5000
/** A handler that is down is probed so often, milliseconds. */
const PROBE = { base: 1000, max: 30_000 }
/** Transient events that wait for one handler; more are dropped, as they may be. */
const TRANSIENT_WAITING = 1000

export interface HandlerStatus {
  name: string
  state: HandlerState
  /** Milliseconds, our wall clock. */
  since: number
  lastError: string | null
}

export interface Worker {
  readonly spec: HandlerSpec
  start(): void
  /** Stops claiming and lets what is under way end, for `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  news(news: LaneNews): void
  /** Hands over an event that is not stored. At most once. */
  transient(fact: StoredFact): void
  nudge(): void
  /** Deliveries became pending again. */
  reload(): void
  pause(): void
  resume(): void
  status(): HandlerStatus
}

export interface WorkerOptions {
  spec: HandlerSpec
  target: Target
  paused: boolean
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
  const { spec, target, store, settler, briefs, observer, clock, random, log } = options
  const queue = new PQueue({ concurrency: spec.concurrency })
  const lanes = new Map<number, ActiveLane>()
  const room = Math.max(LANES_LEAST, spec.concurrency * LANES_PER_PLACE)
  const stopping = new AbortController()
  /** When a delivery last ended in a reset, and when the handler last answered: tells a poison event from an outage. */
  const resets = new Map<number, number>()
  let answeredAt = 0
  let status: HandlerStatus = {
    name: spec.name,
    state: options.paused ? 'paused' : 'up',
    since: clock.now(),
    lastError: null,
  }
  let running = false
  let pumping = false
  let again = false
  let timer: Timer | null = null
  let probes = 0
  let probeAt = 0
  let idle: (() => void) | null = null

  const become = (state: HandlerState, lastError: string | null): void => {
    if (state !== status.state) {
      status = { ...status, state, since: clock.now(), lastError }
      const details = { handler: spec.name, error: lastError }
      if (state === 'up') log.info({ handler: spec.name }, 'handler: up')
      else
        log.warn(
          details,
          state === 'down' ? 'handler: cannot be reached; its deliveries wait' : 'handler: paused',
        )
    } else status = { ...status, lastError }
    observer.handler(spec.name, status.state)
  }

  const pump = async (): Promise<void> => {
    if (pumping) {
      again = true
      return
    }
    pumping = true
    try {
      do {
        again = false
        await claim()
      } while (again && running)
    } catch (error) {
      log.error({ handler: spec.name, err: error }, 'deliver: the store could not be read')
    } finally {
      pumping = false
    }
    await rest()
  }

  const claim = async (): Promise<void> => {
    if (!running || status.state === 'paused') return
    const now = clock.steady()
    const probing = status.state === 'down'
    const limit = probing ? (now >= probeAt && lanes.size === 0 ? 1 : 0) : room - lanes.size
    if (limit <= 0) return
    for (const lane of await store.claimLanes(spec.name, limit, now)) {
      const active = new ActiveLane(store, lane, null)
      active.probe = probing
      activate(active)
    }
  }

  const rest = async (): Promise<void> => {
    if (!running || status.state === 'paused') return
    const next = await store.nextLane(spec.name).catch(() => null)
    timer?.cancel()
    if (!running) return
    const due = Math.max(next ?? Number.POSITIVE_INFINITY, status.state === 'down' ? probeAt : 0)
    // A full house is woken by the first lane that ends.
    const wait = lanes.size >= room ? IDLE_LOOK : Math.max(1, due - clock.steady())
    timer = clock.after(Math.min(IDLE_LOOK, wait), () => void pump())
  }

  const activate = (active: ActiveLane): void => {
    lanes.set(active.lane.id, active)
    void work(active)
  }

  const work = async (active: ActiveLane): Promise<void> => {
    let dueAt: number | undefined
    try {
      while (mayGoOn() && (await active.fill())) {
        dueAt = await step(active)
        if (dueAt !== undefined) break
      }
      await active.settled
    } catch (error) {
      log.error(
        { handler: spec.name, lane: active.lane.key, err: error },
        'deliver: a lane stopped; it goes on later',
      )
      dueAt = clock.steady() + IDLE_LOOK
    }
    await leave(active, dueAt)
  }

  const mayGoOn = (): boolean => running && status.state !== 'paused'

  const leave = async (active: ActiveLane, dueAt: number | undefined): Promise<void> => {
    try {
      await store.releaseLane(active.lane, dueAt)
    } catch (error) {
      log.error({ handler: spec.name, err: error }, 'deliver: a lane could not be put off')
      await store.releaseLane(active.lane)
    }
    lanes.delete(active.lane.id)
    if (lanes.size === 0) idle?.()
    if (running) void pump()
  }

  /** One attempt for the head of a lane. @returns when the lane is due again, if it has to wait. */
  const step = async (active: ActiveLane): Promise<number | undefined> => {
    if (spec.batch.max > 1 && spec.batch.wait > 0 && active.size < spec.batch.max)
      await pause(spec.batch.wait)
    const first = active.first()
    if (first === undefined || !mayGoOn()) return undefined
    const session = await briefOf(first.fact)
    return await queue.add(async () => {
      if (!mayGoOn()) return undefined
      // Lanes that were waiting their turn when the handler went down wait in the store.
      if (status.state === 'down' && !active.probe) return clock.steady()
      const batch = spec.batch.max === 1 ? [first] : active.head(spec.batch.max)
      return await attempt(active, batch, session)
    })
  }

  const briefOf = (fact: StoredFact): Promise<SessionBrief | null> | SessionBrief | null => {
    if (fact.family === 'state' || fact.sessionId === null) return null
    return briefs.peek(fact.sessionId) ?? briefs.find(fact.sessionId, fact.at)
  }

  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))

  const attempt = async (
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    session: SessionBrief | null,
  ): Promise<number | undefined> => {
    const at = clock.now()
    const started = clock.steady()
    const outgoing = batch.map(({ fact, attempts }): Outgoing => ({ fact, attempt: attempts + 1, session }))
    let verdict = await target.send(outgoing, stopping.signal)
    // A connection that was kept open may have been closed by the other side just then.
    if (verdict.kind === 'unreachable' && verdict.reset)
      verdict = await target.send(outgoing, stopping.signal)
    if (verdict.kind === 'aborted') return undefined
    verdict = weigh(verdict, batch)
    const tried = attemptOf(verdict, at, clock.steady() - started)
    if (verdict.kind === 'unreachable') return unreachable(batch, tried)
    answeredAt = clock.steady()
    if (status.state === 'down') {
      probes = 0
      become('up', null)
      again = true
    }
    switch (verdict.kind) {
      case 'delivered':
        active.drop(batch.length)
        settle(active, batch, 'delivered', tried)
        return undefined
      case 'dead':
        active.drop(batch.length)
        settle(active, batch, 'dead', tried)
        log.warn({ handler: spec.name, fact: batch[0]?.fact.id, error: tried.error }, 'deliver: dead letter')
        return undefined
      case 'gone':
        await pauseSelf('the handler answered 410')
        report(batch, 'paused', tried)
        return clock.steady()
      case 'retry':
        return retryLater(active, batch, tried, verdict.floor)
    }
  }

  /** An event that resets the connection while others get through is a poison event, not an outage. */
  const weigh = (verdict: Exclude<Verdict, { kind: 'aborted' }>, batch: readonly PendingDelivery[]) => {
    const pos = batch[0]?.fact.pos ?? 0
    if (verdict.kind !== 'unreachable' || !verdict.reset) {
      resets.delete(pos)
      return verdict
    }
    const before = resets.get(pos)
    if (before !== undefined && answeredAt > before) {
      resets.delete(pos)
      return { kind: 'retry', error: verdict.error, floor: 0 } as const
    }
    if (resets.size >= room) resets.clear()
    resets.set(pos, clock.steady())
    return verdict
  }

  const unreachable = (batch: readonly PendingDelivery[], tried: Attempt): number => {
    report(batch, 'unreachable', tried)
    if (status.state !== 'paused') {
      probes++
      probeAt = clock.steady() + PROBE.base / 2 + backoff(PROBE, probes, random) / 2
      become('down', tried.error ?? null)
    }
    // The lane goes to the end of the queue, so that another one is the next probe.
    return clock.steady()
  }

  const retryLater = (
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    tried: Attempt,
    floor: number,
  ): number | undefined => {
    become(status.state, tried.error ?? `status ${tried.status}`)
    const spent = batch.filter(({ attempts }) => attempts + 1 >= spec.retry.attempts)
    const left = batch.filter(({ attempts }) => attempts + 1 < spec.retry.attempts)
    if (spent.length > 0) {
      settle(active, spent, 'dead', tried)
      log.warn(
        { handler: spec.name, fact: spent[0]?.fact.id, error: tried.error, status: tried.status },
        'deliver: attempts are used up: dead letter',
      )
    }
    if (left.length === 0) {
      active.drop(batch.length)
      return undefined
    }
    const most = Math.max(...left.map(({ attempts }) => attempts)) + 1
    const dueAt = clock.steady() + backoff(spec.retry, most, random, floor)
    settle(active, left, 'retry', tried, dueAt)
    return dueAt
  }

  const settle = (
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    result: 'delivered' | 'retry' | 'dead',
    tried: Attempt,
    dueAt?: number,
  ): void => {
    for (const { fact, attempts } of batch) {
      active.settled = settler.add({
        lane: active.lane,
        pos: fact.pos,
        result,
        attempts: attempts + 1,
        attempt: tried,
        ...(dueAt === undefined ? {} : { dueAt: Math.ceil(dueAt) }),
      })
    }
    // Awaited before the lane is given back; marked here so that a failure meanwhile is not taken for a forgotten one.
    active.settled.catch(() => undefined)
    report(batch, result, tried)
  }

  const report = (batch: readonly PendingDelivery[], outcome: CallbackOutcome, attempt: Attempt): void => {
    for (const { fact, attempts } of batch) {
      observer.callback({ handler: spec.name, fact, outcome, attempt, number: attempts + 1 })
    }
  }

  const pauseSelf = async (reason: string): Promise<void> => {
    become('paused', reason)
    await store.pauseHandler(spec.name, reason)
  }

  return {
    spec,
    start() {
      running = true
      observer.handler(spec.name, status.state)
      void pump()
    },
    async stop(grace) {
      running = false
      timer?.cancel()
      if (lanes.size === 0) return
      const drained = new Promise<void>((resolve) => {
        idle = resolve
      })
      const limit = clock.after(grace, () => stopping.abort())
      await drained
      limit.cancel()
    },
    news({ lane, claimed, deliveries }) {
      const active = lanes.get(lane.id)
      if (active !== undefined) active.extend(deliveries)
      else if (!claimed) void pump()
      else if (running && status.state === 'up' && lanes.size < room) {
        activate(new ActiveLane(store, lane, deliveries))
      } else {
        store
          .releaseLane(lane)
          .catch((error: unknown) => log.error({ err: messageOf(error) }, 'deliver: release'))
        if (status.state === 'down') void pump()
      }
    },
    transient(fact) {
      if (!running || status.state !== 'up' || queue.size >= TRANSIENT_WAITING) return
      void queue.add(async () => {
        const session = fact.sessionId === null ? null : (briefs.peek(fact.sessionId) ?? null)
        await target.send([{ fact, attempt: 1, session }], stopping.signal)
      })
    },
    nudge() {
      void pump()
    },
    reload() {
      for (const active of lanes.values()) active.reload()
      void pump()
    },
    pause() {
      become('paused', 'paused by an operator')
    },
    resume() {
      if (status.state !== 'paused') return
      become('up', null)
      void pump()
    },
    status: () => status,
  }
}
