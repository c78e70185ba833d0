import type { LaneExtension } from '../../core/delivery.ts'
import { messageOf } from '../../std/errors.ts'
import type { StoredFact } from '../../core/fact.ts'
import type { HandlerSpec, HandlerStatus, Trial } from '../../core/handler.ts'
import type { Observer, TransientEvent } from '../../core/observer.ts'
import { createPollLoop, type PollLoop } from '../../std/poll-loop.ts'
import { HandlerHealth, type Pause } from './health.ts'
import { LaneRunner, type LanePorts } from './lane-runner.ts'
import { Recorder } from './recorder.ts'
import type { Target } from './targets/target.ts'
import type { Verdict } from './targets/verdict.ts'
import { createTransients, transientSlots } from './transients.ts'
import { trialOf } from './trial.ts'
import type { Subscriber } from '../../core/bus.ts'
import type { ShardTopics } from '../../core/shards.ts'
import type { HandlerRecord } from '../../core/store-reader.ts'
import { compilePatterns, type EventPattern } from '../../core/pattern.ts'
import type { MemoryWindow } from './lane.ts'
import { transientFact } from './transient.ts'

/** How long a stop waits for attempts in flight, milliseconds. */
const DRAIN = 10_000

/** Delivers facts to all handlers, through one worker each. */
export interface Dispatcher
  extends
    Required<Pick<Subscriber, 'lanesExtended' | 'transient'>>,
    Pick<ShardTopics, 'led' | 'gained' | 'woken' | 'transientShared'> {
  /** Committed facts in memory on their way to handlers. */
  readonly window: Pick<MemoryWindow, 'taken' | 'watch'>
  /** `records`: the handlers as the store knows them. */
  start(records: readonly HandlerRecord[]): void
  stop(grace?: number): Promise<void>
  reload(): void
  worker(name: string): Worker | undefined
  statuses(): HandlerStatus[]
}

export function createDispatcher(
  workers: readonly Worker[],
  { acks, window, store, log }: Pick<LanePorts, 'acks' | 'window' | 'store' | 'log'>,
): Dispatcher {
  const byName = new Map(workers.map((worker) => [worker.spec.name, worker]))
  /**
   * When an operator pauses or resumes a handler through another replica, this process follows. If this process stores a
   * pause or its end while it reads, the answer may be from before that: it reads again.
   */
  const follow = async (): Promise<void> => {
    const before = workers.map(({ changes }) => changes)
    const records = await store.read.handlers()
    if (workers.some(({ changes }, index) => changes !== before[index])) return await follow()
    for (const worker of workers) worker.follow(pauseOf(records, worker.spec.name))
  }
  const followStored = (): void =>
    void follow().catch((error: unknown) => log.warn({ err: error }, 'handler: pauses could not be read'))
  const patterns = new Map<Worker, EventPattern>(
    workers.map((worker) => [worker, compilePatterns(worker.spec.events)]),
  )
  /**
   * A module gets the transient events of a session in the process that also gives it the facts of the session. A handler
   * over HTTP is the same for all processes, so the leader sends it all of them.
   */
  const passOn = (event: TransientEvent, isFor: (worker: Worker) => boolean): void => {
    const fact = transientFact(event)
    for (const [worker, pattern] of patterns)
      if (pattern.wantsTransient(fact.type) && isFor(worker)) worker.transient(fact)
  }
  const owns = ({ sessionId }: TransientEvent): boolean => store.shards.owns(sessionId)

  return {
    window,
    start(records) {
      for (const worker of workers) worker.start(pauseOf(records, worker.spec.name))
      // Another replica may have stored a pause since `records` were read.
      followStored()
    },
    async stop(grace = DRAIN) {
      const stopping = Promise.all(workers.map((worker) => worker.stop(grace)))
      acks.stop()
      await stopping
    },
    lanesExtended(lanes) {
      for (const extension of lanes) byName.get(extension.lane.handler)?.extend(extension)
    },
    transient: (event) => passOn(event, ({ spec }) => spec.target.kind === 'http' || owns(event)),
    transientShared: (event) => passOn(event, ({ spec }) => spec.target.kind === 'module' && owns(event)),
    reload() {
      for (const worker of workers) worker.reload()
    },
    led() {
      for (const worker of workers) worker.look()
    },
    gained() {
      for (const worker of workers) worker.look()
    },
    woken({ topics }) {
      if (topics.has('lanes')) for (const worker of workers) worker.look()
      if (topics.has('handlers')) followStored()
    },
    worker: (name) => byName.get(name),
    statuses: () => workers.map((worker) => worker.status()),
  }
}

/** A handler that was paused before the restart stays paused. */
function pauseOf(records: readonly HandlerRecord[], name: string): Pause | null {
  const { pausedAt = null, pauseReason = null } = records.find((record) => record.name === name) ?? {}
  return pausedAt === null ? null : { since: pausedAt, reason: pauseReason }
}

/** A person waits for the answer to a test fact so long, milliseconds: the console and the commands give up at 30 s. */
const TRIED = 25_000

/** Lanes in memory for each slot of the handler; other lanes stay in the store. */
const LANES_PER_SLOT = 4
const LANES_LEAST = 64

/** Claims and runs the lanes of one handler, and does what an operator asks for: test, pause, resume. */
export interface Worker {
  readonly spec: HandlerSpec
  /** How often this process has stored a pause or its end. */
  readonly changes: number
  /** `paused`: the pause that was stored before the restart; null: none. */
  start(paused: Pause | null): void
  /** Stops claiming lanes and waits for attempts in flight, `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  extend(extension: LaneExtension): void
  /** Sends a transient event at most once; it is not stored. */
  transient(fact: StoredFact): void
  /** Called after a redelivery or a replay made deliveries pending. */
  reload(): void
  /** Called when another process may have put facts into the lanes, or made deliveries pending again. */
  look(): void
  /** `paused`: the pause that is stored now; only a change has an effect. */
  follow(paused: Pause | null): void
  /**
   * Sends a test fact once, in any state of the handler, and waits at most 25 s for the answer. Nothing is stored or
   * counted.
   */
  test(fact: StoredFact): Promise<Trial>
  pause(since: number | null): void
  resume(): void
  status(): HandlerStatus
}

export interface WorkerOptions {
  spec: HandlerSpec
  target: Target
}

/** While the handler is down, its lanes stay in the store and one lane at a time is sent as a probe. */
export function createWorker(options: WorkerOptions, ports: LanePorts & { observer: Observer }): Worker {
  const { spec, target } = options
  const { store, summaries, clock, log, observer } = ports
  const room = Math.max(LANES_LEAST, spec.concurrency * LANES_PER_SLOT)
  const health = new HandlerHealth(spec.name, ports)
  const recorder = new Recorder(spec.name, ports)
  /** After the last claim, lanes waited in the store for room in memory; or a lane came later, when it was full. */
  let crowded = false
  /** How many lanes came when the memory was full. */
  let arrivals = 0
  /** Whether the last claim began with lanes that were in memory before. */
  let returnedFirst = false
  /** When the pause in the store began, as this process last read or stored it; null: there was none. `follow` compares with it. */
  let pausedSince: number | null = null
  let changes = 0
  const stored = (since: number | null): void => {
    pausedSince = since
    changes++
  }

  const claim = async (): Promise<void> => {
    if (!pollLoop.running || health.state === 'paused') return
    const now = clock.steady()
    const probing = health.state === 'down'
    const limit = probing ? (now >= health.probeAt && lanes.size === 0 ? 1 : 0) : room - lanes.size
    if (limit <= 0) {
      // A lane that had to wait for its retry is due now, and has no room.
      if (!probing && !crowded) crowded = await waits()
      return
    }
    const { name: handler } = spec
    // New lanes precede those that gave their place to others, so that every second claim begins with the latter.
    returnedFirst = crowded && !probing && !returnedFirst
    let left = limit
    for (const returned of returnedFirst ? [true, false] : [false]) {
      // Each lane begins at once: if the next claim fails, none stays claimed and idle.
      const claimed = left > 0 ? await store.lanes.claim({ handler, lanes: left, returned }) : []
      for (const lane of claimed) lanes.begin(lane, null, probing)
      left -= claimed.length
    }
    if (probing) return
    crowded = left === 0
    const before = arrivals
    if (crowded && !(await waits()) && arrivals === before) crowded = false
  }

  /** Whether a lane that is due waits in the store for room in memory. */
  const waits = async (): Promise<boolean> => {
    const due = await store.lanes.nextDue(spec.name)
    return due !== null && due <= 0
  }

  const pollLoop: PollLoop = createPollLoop({
    clock,
    pass: claim,
    async next() {
      // No timer: a running probe, and a lane that gives its place to others, wake this loop when the lane is released; a
      // paused handler does when it is resumed.
      if (health.state === 'paused' || (crowded && lanes.size >= room)) return null
      if (health.state === 'down' && lanes.size > 0) return null
      const due = await store.lanes.nextDue(spec.name)
      return due === null ? null : Math.max(due, health.probeAt - clock.steady())
    },
    onError: (error) => log.error({ handler: spec.name, err: error }, 'deliver: the store could not be read'),
  })

  const send = (fact: StoredFact, options: { test: boolean }): Promise<Verdict> => {
    const known = fact.sessionId === null || options.test ? undefined : summaries.peek(fact.sessionId)
    return new Promise((resolve) =>
      target.send([{ fact, attempt: 1, session: known ?? null, test: options.test }], resolve),
    )
  }

  const transients = createTransients({
    slots: transientSlots(spec.concurrency),
    free: () => (pollLoop.running && health.state === 'up' ? lanes.free : 0),
    async send(fact) {
      await send(fact, { test: false })
    },
    onDropped: () => observer.transientDropped(spec.name),
    clock,
  })

  const lanes = new LaneRunner(
    {
      spec,
      target,
      health,
      recorder,
      onRoom: () => pollLoop.wake(),
      isCrowded: () => crowded,
      onSlot: () => transients.next(),
      onPaused: stored,
    },
    ports,
  )

  const resume = (): void => {
    if (health.state !== 'paused') return
    health.become('up', null)
    pollLoop.wake()
  }

  return {
    spec,
    get changes() {
      return changes
    },
    start(paused) {
      pausedSince = paused?.since ?? null
      if (paused !== null) health.stayPaused(paused)
      health.report()
      pollLoop.start()
    },
    async stop(grace) {
      pollLoop.stop()
      const { promise: late, resolve: giveUp } = Promise.withResolvers<void>()
      // A callback without an answer within the grace is aborted, and sent again after the next start.
      const limit = clock.after(grace, giveUp)
      await Promise.race([Promise.all([lanes.close(), transients.stop()]), late])
      limit.cancel()
      lanes.stop()
      target.abort()
    },
    extend(extension) {
      if (lanes.extend(extension)) return
      if (lanes.size >= room) {
        crowded = true
        arrivals++
      }
      if (!extension.claimed) pollLoop.wake()
      else if (pollLoop.running && health.state === 'up' && lanes.size < room) {
        lanes.begin(extension.lane, extension.deliveries)
      } else {
        store.lanes
          .release(extension.lane)
          .catch((error: unknown) =>
            log.error({ err: messageOf(error) }, 'deliver: a lane could not be released'),
          )
        if (health.state === 'down') pollLoop.wake()
      }
    },
    transient(fact) {
      if (pollLoop.running && health.state === 'up') transients.offer(fact)
    },
    async test(fact) {
      const started = clock.steady()
      const { promise: late, resolve: giveUp } = Promise.withResolvers<Verdict>()
      const error = `no answer within ${TRIED / 1000} s; a callback may take ${spec.timeout / 1000} s`
      const limit = clock.after(TRIED, () => giveUp({ kind: 'retry', error, floor: 0 }))
      const verdict = await Promise.race([send(fact, { test: true }), late])
      limit.cancel()
      const ms = clock.steady() - started
      log.info(
        { handler: spec.name, type: fact.type, outcome: verdict.kind, ms },
        'handler: a test fact was sent',
      )
      return trialOf(verdict, ms)
    },
    reload() {
      lanes.reload()
      pollLoop.wake()
    },
    look() {
      lanes.look()
      pollLoop.wake()
    },
    follow(paused) {
      const since = paused?.since ?? null
      // The start has its own records.
      if (!pollLoop.running || since === pausedSince) return
      pausedSince = since
      if (paused === null) resume()
      else health.become('paused', paused.reason)
    },
    pause(since) {
      health.become('paused', 'paused by an operator')
      stored(since)
    },
    resume() {
      stored(null)
      resume()
    },
    status: () => health.status,
  }
}
