import { attemptNumber, type Lane, type LaneExtension, type PendingDelivery } from '../../core/delivery.ts'
import type { StoredFact } from '../../core/fact.ts'
import type { HandlerSpec } from '../../core/handler.ts'
import { Fifo } from '../../std/fifo.ts'
import type { Clock, Log, Random, Timer } from '../../std/ports.ts'
import type { SessionSummary } from '../../core/resource.ts'
import type { Store } from '../../core/store.ts'
import type { AckBatcher } from './ack-batcher.ts'
import type { Summaries } from './summaries.ts'
import type { HandlerHealth } from './health.ts'
import { ActiveLane, type MemoryWindow } from './lane.ts'
import { decide } from './policy.ts'
import type { Ended, Recorder } from './recorder.ts'
import type { Outgoing, Target } from './targets/target.ts'
import { attemptOf, type Verdict } from './targets/verdict.ts'

/** Attempts that a lane may make in its slot while other lanes wait for a slot. */
const TURN = 16
/** A lane with slow attempts leaves its slot after this time, milliseconds. */
const TURN_TIME = 50
/** So long a lane that is served stays in memory while lanes in the store wait for room, milliseconds. */
const STAY = 1000
/** Limits of one read of a lane: facts and characters. */
const PAGE = { facts: 64, characters: 1024 * 1024 }
/**
 * Another replica may make deliveries in the middle of a lane pending again. So often, milliseconds, a lane to which
 * others write is read from its start.
 */
const WHOLE = 1000
/** How long a lane waits after an error of the store or of the sidecar itself, milliseconds. */
const FAILED = 5000

/** Ports that all lane runners of a process share. */
export interface LanePorts {
  store: Store
  acks: AckBatcher
  summaries: Summaries
  window: MemoryWindow
  clock: Clock
  random: Random
  log: Log
}

/** One handler, and the functions to call about its lanes. */
export interface Lanekeeper {
  spec: HandlerSpec
  target: Target
  health: HandlerHealth
  recorder: Recorder
  /** Called when a lane is released or the handler is up again: the worker may claim more lanes. */
  onRoom: () => void
  /** Whether lanes in the store may wait for room in memory. */
  isCrowded: () => boolean
  /** Called when a slot is free and no lane is ready to use it. */
  onSlot: () => void
  /** Called when a pause is stored. */
  onPaused: (since: number | null) => void
}

/**
 * Runs the claimed lanes of one handler. A lane has only its first delivery (or batch) in flight; lanes run in
 * parallel, up to the concurrency of the handler. One loop: `#next` finds what a lane needs, `#attempt` sends its head,
 * `#apply` records the outcome. A burst is 40,000 callbacks, so the loop creates a promise only where it waits for the
 * store.
 */
export class LaneRunner {
  readonly #ports: LanePorts
  readonly #keeper: Lanekeeper
  readonly #batch: { max: number; wait: number }
  readonly #lanes = new Map<number, ActiveLane>()
  readonly #ready = new Fifo<ActiveLane>()
  #inFlight = 0
  #phase: 'running' | 'closing' | 'stopped' = 'running'
  /** Ends the waits for session summaries when the runner closes. */
  readonly #closing = new AbortController()
  readonly #timers = new Set<Timer>()
  #whenEmpty: (() => void) | null = null

  constructor(keeper: Lanekeeper, ports: LanePorts) {
    this.#ports = ports
    this.#keeper = keeper
    this.#batch = keeper.target.batches ? keeper.spec.batch : { max: 1, wait: 0 }
  }

  /** Lanes in memory. */
  get size(): number {
    return this.#lanes.size
  }

  /** Slots that no lane uses or waits for. */
  get free(): number {
    return this.#ready.length > 0 ? 0 : this.#keeper.spec.concurrency - this.#inFlight
  }

  /** Starts a claimed lane. `deliveries`: all its pending deliveries; null: they must be read from the store. */
  begin(lane: Lane, deliveries: readonly PendingDelivery[] | null, probe = false): void {
    const active = new ActiveLane(lane, deliveries, this.#ports.window, this.#onAcknowledged)
    active.ended = (verdict) => this.#ended(active, verdict)
    active.probe = probe
    active.begunAt = this.#ports.clock.steady()
    active.readAt = active.begunAt
    this.#lanes.set(lane.id, active)
    this.#next(active)
  }

  /** Adds new deliveries to a lane in memory. @returns false when the lane is not in memory. */
  extend({ lane, deliveries }: LaneExtension): boolean {
    const active = this.#lanes.get(lane.id)
    if (active === undefined || active.state === 'released') return false
    // On a process that does not lead, the leader may have put frames into the lane before these facts: the store is
    // read.
    if (this.#ports.store.shards.leads) active.extend(deliveries)
    else active.miss()
    if (active.state === 'draining' && active.dueAt === null) this.#next(active)
    return true
  }

  /** Another process may have put facts into any lane, or made deliveries in the middle pending again. */
  look(): void {
    const whole = this.#ports.clock.steady() - WHOLE
    for (const active of this.#lanes.values()) {
      if (active.readAt <= whole) active.markStale()
      else active.miss()
      if (active.state === 'draining' && active.dueAt === null) this.#next(active)
    }
  }

  /** Called after a redelivery or a replay: any lane may have pending deliveries that are not in memory. */
  reload(): void {
    for (const active of this.#lanes.values()) {
      active.markStale()
      if (active.state === 'draining' && active.dueAt === null) this.#next(active)
    }
  }

  /** Starts no further attempt. Resolves when no attempt is in flight and each lane is released. */
  async close(): Promise<void> {
    this.#phase = 'closing'
    this.#closing.abort()
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const active of this.#lanes.values())
      if (active.state === 'ready' || active.state === 'waiting') this.#drain(active)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenEmpty = resolve
    if (this.#lanes.size > 0) await promise
  }

  /** Ignores the outcomes of attempts in flight: these callbacks are sent again after the next start. */
  stop(): void {
    this.#phase = 'stopped'
  }

  get #goesOn(): boolean {
    return this.#phase === 'running' && this.#keeper.health.state !== 'paused'
  }

  /** Decides what a lane without a slot needs next. */
  #next(active: ActiveLane): void {
    if (this.#hadItsTurn(active)) active.dueAt = this.#ports.clock.steady()
    if (!this.#goesOn || active.dueAt !== null || this.#isOthers(active)) this.#drain(active)
    else if (active.unread) this.#read(active)
    else if (active.size === 0) this.#drain(active)
    else if (this.#batch.wait > 0 && active.size < this.#batch.max) this.#gather(active)
    else this.#describe(active)
  }

  /**
   * The sessions of an overloaded handler get new facts all the time, so their lanes never become empty. Each goes to the end of the
   * queue after a while, so that the sessions beyond the room in memory get their turn.
   */
  #hadItsTurn(active: ActiveLane): boolean {
    const { begunAt, attempt, dueAt, size, unread } = active
    const goesOn = dueAt === null && (size > 0 || unread) && attempt.started >= begunAt
    if (!goesOn || !this.#keeper.isCrowded()) return false
    return this.#ports.clock.steady() - begunAt >= STAY
  }

  /**
   * The shard moves to another process, or this process was frozen so long that another may own it. The new owner sends the
   * rest of the lane. The shard is that of the session. A fact without a session in a lane of its own, whose key is the id of the
   * fact, has the shard of that key.
   */
  #isOthers(active: ActiveLane): boolean {
    const fact = active.first()?.fact
    const { key } = active.lane
    // Which session it is shows once the fact is read.
    if (fact === undefined && isOfOneFact(key)) return false
    const place = fact?.sessionId ?? key
    return !this.#ports.store.shards.owns(place === '' ? null : place)
  }

  #read(active: ActiveLane): void {
    active.state = 'waiting'
    // Acks must be durable before the lane is read again from its start.
    if (active.stale && active.unacknowledged > 0) return void (active.state = 'draining')
    // The lane was read again only because another process may have made deliveries pending. If there are none, that is
    // no fault.
    const again = active.stale
    if (again) active.readAt = this.#ports.clock.steady()
    const after = active.beginRead()
    this.#ports.store.lanes.read(active.lane, after, PAGE.facts, PAGE.characters).then(
      (page) => {
        active.fill(page)
        if (active.state !== 'waiting') return
        const nothing = active.size === 0 && !active.unread
        // No fact of the lane can be read: the lane waits before it is claimed again, so that its damaged facts are
        // marked first.
        if (nothing && after === 0 && !again) {
          active.dueAt = this.#ports.clock.steady() + FAILED
          this.#ports.log.warn(this.#names(active), 'deliver: no pending delivery of a lane can be read')
        }
        this.#next(active)
      },
      (error: unknown) => this.#fail(active, error),
    )
  }

  /** Waits `batch.wait` milliseconds for more deliveries of the batch. */
  #gather(active: ActiveLane): void {
    active.state = 'waiting'
    const timer = this.#ports.clock.after(this.#batch.wait, () => {
      this.#timers.delete(timer)
      if (active.state === 'waiting') this.#describe(active)
    })
    this.#timers.add(timer)
  }

  /**
   * If its session has no summary yet, a lane waits for the first read of the session before it takes a slot. It waits
   * only once: other replicas may make it stale meanwhile, and facts of a replica whose clock is ahead would never be
   * old enough.
   */
  #describe(active: ActiveLane): void {
    const fact = active.first()?.fact
    if (fact === undefined || fact.sessionId === null || !this.#lacksSummary(fact)) {
      this.#enqueue(active)
      return
    }
    active.state = 'waiting'
    const { summaries } = this.#ports
    const { sessionId, at } = fact
    const found = active.waited
      ? summaries.get(sessionId)
      : summaries.find(sessionId, at, this.#closing.signal)
    found.then(
      (summary) => {
        active.waited = true
        active.summary = summary
        if (active.state === 'waiting') this.#enqueue(active)
      },
      (error: unknown) => this.#fail(active, error),
    )
  }

  #enqueue(active: ActiveLane): void {
    active.state = 'ready'
    this.#ready.push(active)
    this.#fillSlots()
  }

  #fillSlots(): void {
    const { concurrency } = this.#keeper.spec
    while (this.#inFlight < concurrency && this.#ready.length > 0) {
      const active = this.#ready.shift()
      if (active?.state !== 'ready') continue
      this.#inFlight++
      active.slotAt = this.#ports.clock.steady()
      this.#take(active, 0)
    }
    if (this.#ready.length === 0) this.#keeper.onSlot()
  }

  /** Makes the next attempt in the lane's slot, or frees the slot. `taken`: attempts made in the slot so far. */
  #take(active: ActiveLane, taken: number): void {
    const first = this.#goesOnInSlot(active, taken) ? active.first() : undefined
    if (first === undefined) this.#leaveSlot(active)
    else this.#attempt(active, first, taken)
  }

  #goesOnInSlot(active: ActiveLane, taken: number): boolean {
    if (!this.#goesOn || active.dueAt !== null || active.stale || this.#isOthers(active)) return false
    // The store refuses acks: a delivery whose outcome cannot be stored would be sent twice.
    if (this.#ports.acks.refused) return false
    if (this.#keeper.health.state === 'down' && !active.probe) {
      active.dueAt = this.#ports.clock.steady()
      return false
    }
    if (taken === 0) return true
    if (this.#ready.length > 0 && (taken >= TURN || this.#ports.clock.steady() - active.slotAt >= TURN_TIME))
      return false
    const fact = active.first()?.fact
    return fact !== undefined && this.#batch.wait === 0 && !this.#lacksSummary(fact)
  }

  #leaveSlot(active: ActiveLane): void {
    this.#inFlight--
    active.state = 'waiting'
    if (this.#ports.acks.refused) {
      this.#ports.acks.onceAccepted(() => {
        if (active.state === 'waiting') this.#next(active)
      })
    } else this.#next(active)
    this.#fillSlots()
  }

  #attempt(active: ActiveLane, first: PendingDelivery, taken: number): void {
    const { clock, store } = this.#ports
    const { attempt } = active
    active.state = 'sending'
    const batch = this.#batch.max === 1 ? [first] : active.head(this.#batch.max)
    const session = this.#summaryOf(active, first.fact)
    attempt.batch = batch
    attempt.outgoing = batch.map((delivery): Outgoing => ({
      fact: delivery.fact,
      attempt: attemptNumber(delivery),
      session,
    }))
    attempt.positions = batch.map(({ fact }) => fact.pos)
    attempt.at = clock.now()
    attempt.started = clock.steady()
    attempt.taken = taken
    attempt.again = false
    store.lanes.begin(active.lane, attempt.positions)
    this.#keeper.target.send(attempt.outgoing, active.ended)
  }

  #ended(active: ActiveLane, verdict: Verdict): void {
    if (this.#phase === 'stopped') return
    const { clock, store } = this.#ports
    const { attempt } = active
    // The handler may have closed a kept-alive connection at this moment: the request is sent once more.
    if (
      !attempt.again &&
      verdict.kind === 'unreachable' &&
      verdict.reset &&
      this.#keeper.health.state !== 'paused' &&
      !this.#isOthers(active)
    ) {
      attempt.again = true
      return this.#keeper.target.send(attempt.outgoing, active.ended)
    }
    if (verdict.kind === 'aborted') active.dueAt = clock.steady() + FAILED
    else {
      const { batch, positions, at, started } = attempt
      store.lanes.end(active.lane)
      const weighed = this.#keeper.health.weigh(verdict, positions[0] ?? 0)
      const outcome = attemptOf(weighed, at, clock.steady() - started)
      this.#apply(weighed, { lane: active, batch, attempt: outcome }, positions)
    }
    this.#take(active, attempt.taken + 1)
  }

  #apply(verdict: Exclude<Verdict, { kind: 'aborted' }>, ended: Ended, positions: readonly number[]): void {
    const { store, clock, random } = this.#ports
    const { health, recorder, spec, onRoom } = this.#keeper
    const { lane, batch, attempt } = ended
    const decision = decide(verdict, batch, spec.retry, random)
    if (decision.kind === 'down' || decision.kind === 'paused') store.lanes.drop(lane.lane, positions)
    if (decision.kind === 'down') {
      recorder.report(ended, 'unreachable')
      health.unreachable(attempt.error ?? null)
      // The lane goes to the end of the queue, so that another lane is the next probe.
      lane.dueAt = clock.steady()
      return
    }
    if (health.answered()) onRoom()
    if (verdict.kind === 'retry') health.become(health.state, attempt.error ?? `status ${attempt.status}`)
    switch (decision.kind) {
      case 'delivered':
        lane.drop(batch.length)
        return recorder.delivered(ended)
      case 'dead':
        lane.drop(batch.length)
        return recorder.dead(ended)
      case 'retry':
        if (decision.spent.length > 0) recorder.dead({ ...ended, batch: decision.spent })
        lane.dueAt = clock.steady() + decision.wait
        return recorder.retry({ ...ended, batch: decision.left }, { dueAt: lane.dueAt, wait: decision.wait })
      case 'paused':
        lane.dueAt = clock.steady()
        this.#pause('the handler answered 410')
        return recorder.report(ended, 'paused')
    }
  }

  /** Pauses the handler and stores the pause. A handler that is paused already does not change. */
  #pause(reason: string): void {
    const { health } = this.#keeper
    if (health.state === 'paused') return
    health.become('paused', reason)
    this.#storePause(reason)
  }

  /** Until a pause is stored, no other process knows of it, and so cannot end it. */
  #storePause(reason: string): void {
    const { health, spec, onPaused } = this.#keeper
    this.#ports.store.settings.pauseHandler(spec.name, reason).then(onPaused, (error: unknown) => {
      if (this.#phase !== 'running' || health.state !== 'paused') return
      this.#ports.log.error(
        { handler: spec.name, err: error },
        'handler: its pause could not be stored; it is tried again',
      )
      const timer = this.#ports.clock.after(FAILED, () => {
        this.#timers.delete(timer)
        if (health.state === 'paused') this.#storePause(reason)
      })
      this.#timers.add(timer)
    })
  }

  #fail(active: ActiveLane, error: unknown): void {
    if (this.#phase === 'stopped') return
    this.#ports.log.error(
      { ...this.#names(active), err: error },
      'deliver: a lane stopped; it continues later',
    )
    active.dueAt = Math.max(active.dueAt ?? 0, this.#ports.clock.steady() + FAILED)
    this.#drain(active)
  }

  /** Releases a lane without further attempts as soon as its acks are durable. */
  #drain(active: ActiveLane): void {
    if (active.state === 'released' || active.state === 'sending') return
    active.state = 'draining'
    if (active.unacknowledged === 0) this.#release(active)
  }

  readonly #onAcknowledged = (active: ActiveLane): void => {
    if (active.state !== 'draining') return
    if (active.dueAt === null && this.#goesOn && (active.size > 0 || active.unread)) this.#next(active)
    else this.#release(active)
  }

  #release(active: ActiveLane): void {
    active.state = 'released'
    active.clear()
    const gone = (): void => {
      if (this.#lanes.get(active.lane.id) === active) this.#lanes.delete(active.lane.id)
      if (this.#lanes.size === 0) this.#whenEmpty?.()
      this.#keeper.onRoom()
    }
    const { store, clock } = this.#ports
    const released =
      active.dueAt === null
        ? store.lanes.release(active.lane)
        : store.lanes.retry(active.lane, Math.max(0, active.dueAt - clock.steady()))
    released.then(gone, (error: unknown) => {
      this.#ports.log.error(
        { ...this.#names(active), err: error },
        'deliver: the next attempt of a lane could not be scheduled; the lane stays claimed',
      )
      gone()
      this.#hold(active.lane)
    })
  }

  /** Releases the lane again later: a store that fails is not asked again at once. */
  #hold(lane: Lane): void {
    if (this.#phase !== 'running') return
    const timer = this.#ports.clock.after(FAILED, () => {
      this.#timers.delete(timer)
      void this.#ports.store.lanes.release(lane)
    })
    this.#timers.add(timer)
  }

  /**
   * Whether the summary must be read first. A state fact carries a summary; a transcript fact gets the last one that
   * was read.
   */
  #lacksSummary({ family, sessionId }: StoredFact): boolean {
    return (
      family === 'transcript' && sessionId !== null && this.#ports.summaries.peek(sessionId) === undefined
    )
  }

  #summaryOf(active: ActiveLane, { family, sessionId }: StoredFact): SessionSummary | null {
    if (family === 'state' || sessionId === null) return null
    return this.#ports.summaries.peek(sessionId) ?? active.summary
  }

  #names(active: ActiveLane): { handler: string; lane: string } {
    return { handler: this.#keeper.spec.name, lane: active.lane.key }
  }
}

/** Whether it is the key of the lane of one fact, which is the id of that fact. */
function isOfOneFact(key: string): boolean {
  return key.startsWith('evt_')
}
