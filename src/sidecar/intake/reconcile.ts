import PQueue from 'p-queue'
import type { Bus, Subscriber } from '../../core/bus.ts'
import { ServiceError, isParticular } from '../../core/errors.ts'
import type { Service } from '../../core/ports.ts'
import type { Session } from '../../core/resource.ts'
import { isOthers, type OwnerRecord } from '../../core/scope.ts'
import type { ShardTopics } from '../../core/shards.ts'
import type { HintedSession, KnownSession, Reading, Store } from '../../core/store.ts'
import { traceIdOf, type TraceSource, type Tracer } from '../../core/trace.ts'
import { backoff } from '../../std/backoff.ts'
import { createCircuitBreaker } from '../../std/circuit-breaker.ts'
import { messageOf } from '../../std/errors.ts'
import { createPollLoop, type PollLoop } from '../../std/poll-loop.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import { asItIs, baselineOf, diff, diffGone, type DiffContext } from './diff.ts'
import type { Intake } from './commit.ts'
import type { Ownership } from './ownership.ts'
import { FrameWaits, hintAfter, type Expectations, type ReadEntry } from './schedule.ts'
import {
  createSnapshots,
  PAGE,
  readSession,
  type Items,
  type Prefetch,
  type ReadRequest,
  type SnapshotOptions,
} from './snapshot.ts'
import type { Sweep } from './sweep.ts'

/**
 * Concurrent reads of sessions: two more than the requests that the client sends at once, so that a read that hangs gives its
 * place to one that waits.
 */
const READERS = 10
/**
 * Concurrent reads of sessions whose last read hung. They must not take all places: for HANGING milliseconds after such a read, there
 * are fewer.
 */
const AGAIN = { usual: READERS, fewer: 4 }
const HANGING = 150_000
/** The most sessions whose hanging reads are remembered. */
const HUNG = 1000
/** A read that had no answer after so long hung, milliseconds; a proxy answers sooner for a service that is down. */
const LONG = 4000
/**
 * From this many dirty sessions (sessions with a hint) on, one page of the list is cheaper than one read for each
 * session.
 */
const LIST_FROM = 3
/** Backoff after a failed read, milliseconds. */
const FAILED = { base: 500, max: 60_000 }
/** How often a process that does not lead asks whether the first look (sweep.ts) is complete, milliseconds. */
const FIRST_LOOK = 500
/**
 * A process that does not lead counts as started by then, milliseconds: while the service is unreachable, the leader cannot
 * complete the first look, and Kubernetes must not restart the others.
 */
const STARTED = 30_000

export interface Reconciler
  extends Required<Pick<Subscriber, 'hintsAdded'>>, Pick<ShardTopics, 'gained' | 'woken'> {
  start(): void
  /** Waits for reads under way, `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  /** The first look, or a read of it, is under way: no hint in the store shows that. */
  looksFirst(): boolean
}

export interface ReconcilerOptions {
  service: Service
  store: Store
  reader: SessionReader
  sweep: Sweep
  clock: Clock
  random: Random
  log: Log
  traceOf: (sessionId: string) => TraceSource
  bus: Pick<Bus, 'report'>
}

/**
 * Claims dirty sessions and has them read. A hint that arrives during a read marks the session dirty again. So nothing
 * is missed, and no session is read twice at once (the model is client-go's workqueue).
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { service, store, bus, reader, sweep, clock, random, log } = options
  const readers = new PQueue({ concurrency: READERS })
  /** Reads of sessions whose last read hung. */
  const repeated = new PQueue({ concurrency: AGAIN.usual })
  /** The sessions whose last read hung. */
  const hung = new Set<string>()
  /** When a read last hung, steady milliseconds. */
  let hungAt = -Infinity
  const rest = createCircuitBreaker(
    options,
    'reconcile: the store refuses writes; no session is read until it accepts them',
  )
  /** The number of first looks and of their reads under way: a read may outlive its look. */
  let looking = 0
  let firstFailures = 0
  /** Steady milliseconds: when the first look is tried again. */
  let firstRetry = 0

  /** The first look is complete, which never changes again. */
  let looked = false
  /** Steady milliseconds; null: it is reported that the start need not wait for the first look. */
  let startedAt: number | null = null
  const hasLooked = async (): Promise<boolean> => {
    if (looked) return true
    looked = await sweep.looked()
    // The leader completed the first look: this process reports it, too.
    if (looked && !store.shards.leads) bus.report((to) => to.looked?.(true))
    if (!looked && !store.shards.leads && startedAt !== null && clock.steady() - startedAt >= STARTED) {
      startedAt = null
      bus.report((to) => to.looked?.(false))
    }
    return looked
  }

  const waitAfter = (error: unknown, failures: number): number =>
    backoff(FAILED, failures, random, Math.max(FAILED.base, retryAfterOf(error)))

  const roomIn = ({ concurrency, size, pending }: PQueue): number => concurrency * 2 - size - pending
  const room = (): number =>
    rest.trying ? 1 - readers.size - readers.pending - repeated.size - repeated.pending : roomIn(readers)
  /** If there is no room for sessions whose last read hung, their hints are left out. */
  const leftOut = (): ReadonlySet<string> | undefined => (roomIn(repeated) <= 0 ? hung : undefined)

  const claim = async (): Promise<void> => {
    if (!service.authorized()) return
    // Until the leader has completed the first look, no process can distinguish old changes from new ones.
    if (!(await hasLooked()) && !(store.shards.leads && (await firstLook()))) return
    for (;;) {
      if (rest.until > clock.steady()) return
      const free = room()
      if (free <= 0 || !pollLoop.running) return
      const except = leftOut()
      const asked = hung.size > 0 && except === undefined ? Math.min(free, roomIn(repeated)) : free
      const dirty = await store.hints.claim(asked, except)
      const alone = dirty.filter(({ sessionId, scope }) => sessionId !== null && scope !== 'artifacts')
      const prefetch = alone.length >= LIST_FROM ? listOnce() : null
      for (const entry of dirty) {
        const queue = hung.has(entry.sessionId ?? '') ? repeated : readers
        void queue.add(() => take(entry, prefetch))
      }
      if (dirty.length < asked) return
    }
  }

  const pollLoop: PollLoop = createPollLoop({
    clock,
    pass: claim,
    async next() {
      if (!service.authorized()) return null
      if (!(await hasLooked())) return store.shards.leads ? firstRetry - clock.steady() : FIRST_LOOK
      if (rest.until > clock.steady()) return rest.until - clock.steady()
      // The next read that ends wakes the loop.
      return room() <= 0 ? null : await store.hints.nextDue(leftOut())
    },
    onError: (error) => log.error({ err: error }, 'reconcile: the queue could not be read'),
  })

  const counted = async (look: () => Promise<void>): Promise<void> => {
    looking++
    try {
      await look()
    } finally {
      looking--
    }
  }

  /** Reads a session of the first look. One that cannot be read must not hold up the others for long. */
  const readFirst = async (session: Session, since: number): Promise<void> => {
    try {
      await reader.readFirst(session, since)
    } catch (error) {
      if (!isParticular(error, firstFailures)) throw error
      const { id: sessionId } = session
      log.warn(
        { sessionId, ...problemOf(error) },
        'reconcile: a session cannot be read; its entry in the list is used',
      )
      await reader.takeFirst(session, since)
    }
  }

  const firstLook = async (): Promise<boolean> => {
    if (clock.steady() < firstRetry) return false
    try {
      await counted(() =>
        sweep.firstLook((session, since) => counted(() => readers.add(() => readFirst(session, since)))),
      )
    } catch (error) {
      if (!pollLoop.running) return false
      firstRetry = clock.steady() + waitAfter(error, ++firstFailures)
      log.warn(problemOf(error), 'reconcile: the first read of the service failed and is retried')
      bus.report((to) => to.looked?.(false))
      bus.report((to) => to.swept?.(messageOf(error)))
      return false
    }
    if (!pollLoop.running) return false
    const done = await hasLooked()
    // The list changed so often that the walk could not complete: the next walk is delayed.
    if (!done) firstRetry = clock.steady() + waitAfter(null, ++firstFailures)
    bus.report((to) => to.looked?.(done))
    if (done) bus.report((to) => to.swept?.(null))
    return done
  }

  /** The first page of the list, shared by all reads of one round; a session that is not on it is read alone. */
  const listOnce = (): (() => Promise<Map<string, Session>>) => {
    let page: Promise<Map<string, Session>> | null = null
    return () => {
      page ??= service
        .listSessions({ limit: PAGE })
        .then(({ data }) => new Map(data.map((session) => [session.id, session])))
        .catch(() => new Map<string, Session>())
      return page
    }
  }

  const take = async (
    entry: HintedSession,
    prefetch: (() => Promise<Map<string, Session>>) | null,
  ): Promise<void> => {
    const { sessionId } = entry
    const begunAt = clock.steady()
    if (sessionId !== null) hung.delete(sessionId)
    try {
      if (sessionId === null) {
        await sweep.run(entry.scope === 'turns', entry.seen)
        await store.hints.finishSweep(entry)
        bus.report((to) => to.swept?.(null))
      } else {
        const listed = prefetch === null ? undefined : (await prefetch()).get(sessionId)
        if (await reader.read(entry, sessionId, listed)) await store.hints.release(entry)
      }
      rest.end()
      if (clock.steady() - hungAt >= HANGING) repeated.concurrency = AGAIN.usual
    } catch (error) {
      if (sessionId !== null && isSilent(error) && clock.steady() - begunAt >= LONG) {
        const [oldest] = hung
        if (oldest !== undefined && hung.size >= HUNG) hung.delete(oldest)
        hung.add(sessionId)
        hungAt = clock.steady()
        repeated.concurrency = AGAIN.fewer
      }
      await failed(entry, error)
    }
    pollLoop.wake()
  }

  const failed = async (entry: HintedSession, error: unknown): Promise<void> => {
    const { sessionId } = entry
    // The hint stays, and the session is read after the next start; the store may be closed by now.
    if (!pollLoop.running) return await store.hints.release(entry)
    const wait = waitAfter(error, entry.failures + 1)
    try {
      await store.hints.retry(entry, wait)
    } catch (cause) {
      await store.hints.release(entry)
      return rest.refused(cause)
    }
    rest.end()
    if (sessionId === null) bus.report((to) => to.swept?.(messageOf(error)))
    const details = {
      sessionId,
      ...(sessionId === null ? {} : { trace_id: traceIdOf(options.traceOf(sessionId)) }),
      wait,
      ...problemOf(error),
    }
    if (error instanceof ServiceError) log.warn(details, 'reconcile: a read failed and is retried')
    else log.error({ ...details, err: error }, 'reconcile: a read failed and is retried')
  }

  return {
    start() {
      service.onAuthorization((authorized) => {
        if (authorized) pollLoop.wake()
      })
      startedAt = clock.steady()
      pollLoop.start()
    },
    async stop(grace) {
      pollLoop.stop()
      readers.clear()
      repeated.clear()
      // A read that hangs is repeated after the next start: its hint stays.
      const { promise, resolve } = Promise.withResolvers<void>()
      const limit = clock.after(grace, resolve)
      await Promise.race([Promise.all([readers.onIdle(), repeated.onIdle()]), promise])
      limit.cancel()
    },
    hintsAdded: () => pollLoop.wake(),
    gained: () => pollLoop.wake(),
    woken({ topics }) {
      if (topics.has('hints')) pollLoop.wake()
    },
    looksFirst: () => looking > 0,
  }
}

function isSilent(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.retryAfter !== null) return false
  return error.silent || error.code === 'outpaced'
}

function retryAfterOf(error: unknown): number {
  return error instanceof ServiceError ? (error.retryAfter ?? 0) : 0
}

function problemOf(error: unknown): object {
  if (!(error instanceof ServiceError)) return { error: messageOf(error) }
  return { code: error.code, status: error.status, requestId: error.requestId, error: error.message }
}

/** How much the clocks of the service's machines may differ, milliseconds. */
const CLOCKS_DIFFER = 60_000
/** The entry for reads of the first look, which no hint caused. */
const FIRST: ReadEntry = {
  sessionId: null,
  claim: null,
  elsewhere: false,
  scope: 'turns',
  seen: {},
  failures: 0,
}

export interface ReadOptions extends Omit<SnapshotOptions, 'expectedTurns'> {
  service: Service
  store: Store
  bus: Pick<Bus, 'report'>
  intake: Intake
  items: Items | null
  /** Names of the function tools that this sidecar runs. */
  tools: ReadonlySet<string>
  clock: Clock
  log: Log
  /**
   * While connected, it announces turns and sends their turn.ended frames. `heldFor`: how long frames have waited in
   * this process in all, milliseconds.
   */
  stream: { connected(): boolean; heldFor(): number } | null
  prefetch: Prefetch
  expectations: Expectations
  ownership: Ownership
}

export interface SessionReader {
  /**
   * Reads a dirty session and commits what changed. `listed`: the session as a page of the list showed it.
   * @returns false when the read was postponed, so that the session is no longer claimed.
   */
  read(entry: HintedSession, sessionId: string, listed: Session | undefined): Promise<boolean>
  /** Reads a session of the first look. `since`: service clock; what is older makes no facts. */
  readFirst(session: Session, since: number): Promise<void>
  /** When a session of the first look cannot be read, stores it as the list shows it; it is read later like any other. */
  takeFirst(session: Session, since: number): Promise<void>
}

/** Reads sessions and their turns, compares them with the store and commits the changes. */
export function createSessionReader(options: ReadOptions): SessionReader {
  const { service, store, intake, clock, expectations, ownership } = options
  const readSnapshot = createSnapshots({ ...options, expectedTurns: expectations.turnsOf })
  const readAlive = (sessionId: string): Promise<Session | null> => readSession(service, sessionId)
  const frameWaits = new FrameWaits(() => options.stream?.heldFor() ?? 0)

  const read = async (
    entry: ReadEntry,
    sessionId: string,
    listed: Session | undefined,
    since: number | null,
  ): Promise<boolean> => {
    const begunAt = clock.steady()
    const noted = ownership.filter.active ? await ownership.noted(sessionId) : null
    // The session was found to be foreign after its hint was claimed, and the hint is removed.
    if (noted !== null && isOthers(noted)) return true
    const before = await store.resources.known(sessionId)
    const held = atHand(entry, before, listed, latestThere())
    // A prefetch may have begun before another process stored its hint. One that is not used now is too old for the next read.
    if (held !== undefined || entry.elsewhere) options.prefetch.drop(sessionId)
    const first = held ?? (await (options.prefetch.take(sessionId) ?? readAlive(sessionId)))
    if (first === null) return await writeGone(entry, sessionId)
    const adoptedAt = before === null || before.deleted ? (noted?.adoptedAt ?? null) : null
    if (isOlder(first, before, latestThere())) return await writeNothing(entry, before)
    if (ownership.filter.active && !(await admit(first, noted))) return true
    const request: ReadRequest = {
      entry,
      begunAt,
      before,
      since: adoptedAt ?? since,
      passed: frameWaits.passed(sessionId),
      streamConnected: options.stream?.connected() ?? false,
    }
    const snapshot = await readSnapshot(request, first)
    if (snapshot === null) return await writeGone(entry, sessionId)
    // The metadata, and with it the owner, may have changed while the turns were read.
    if (ownership.filter.active && !(await admit(snapshot.session, noted))) return true
    const knownTurns = snapshot.known?.turns ?? snapshot.placeholders
    // Reads of a failed first look may end late: newer state may be stored by now.
    if (isOlder(snapshot.session, snapshot.known, latestThere()))
      return await writeNothing(entry, snapshot.known)
    const context = contextOf(request)
    const difference = diff(snapshot, context)
    // The turn.ended frame brings a hint of its own, perhaps during this read: the session is due again at that hint,
    // or at `waitUntil`.
    if (difference.waitUntil !== null) {
      frameWaits.begin(difference.reading.turns, context.steady)
      frameWaits.keep(sessionId, snapshot.passed)
      return await defer(entry, Math.max(0, difference.waitUntil - clock.steady()))
    }
    // The commit of the read removes the hint, so the items are read before it. Read afterwards, they would be lost in
    // a crash, or when they cannot be read.
    const { endedSince } = snapshot
    const items = await options.items?.read(sessionId, snapshot.known, {
      since: difference.reading.baseline,
      failures: entry.failures,
    })
    const unseen = expectations.weigh(snapshot.session, [...knownTurns, ...difference.turns], snapshot.known)
    const schedule = { turns: difference.turns, atRest: difference.reading.atRest }
    const hint = hintAfter(entry, schedule, context.steady, { items, unseen, endedSince })
    const isStored = await write(entry, { ...difference.reading, hint })
    frameWaits.keep(sessionId, isStored ? [] : snapshot.passed)
    return isStored
  }

  /** Stores the owner of a session that was just read. @returns whether it is ours. */
  const admit = async (session: Session, noted: OwnerRecord | null): Promise<boolean> => {
    const isOurs = ownership.isOurs(session)
    if (!isOurs) {
      frameWaits.keep(session.id, [])
      await ownership.note(session.id, 'foreign')
    } else if (noted?.owner !== 'ours') await ownership.note(session.id, 'ours')
    return isOurs
  }

  /** The latest time (service clock, milliseconds) at which anything at the service can have happened. */
  const latestThere = (): number => clock.now() + service.clockOffset() + service.clockOpen() + CLOCKS_DIFFER

  const contextOf = ({ entry, since, streamConnected }: ReadRequest): DiffContext => ({
    now: clock.now(),
    steady: clock.steady(),
    seen: firstOf(entry.seen, clock.now()),
    since,
    tools: options.tools,
    frameWait: { ms: frameWaits.limit(streamConnected && since === null, clock.steady()), since: frameWaits },
  })

  const defer = async ({ sessionId, claim }: ReadEntry, after: number): Promise<false> => {
    if (claim !== null) await store.hints.defer({ sessionId, claim }, after)
    return false
  }

  const write = async (entry: ReadEntry, reading: Reading): Promise<boolean> => {
    if (!(await intake.reading(reading))) return await defer(entry, 0)
    frameWaits.end(reading.turns)
    if (reading.resolved.length > 0) {
      options.bus.report((to) =>
        to.actionsGone?.(reading.resolved, reading.session === null ? 'deleted' : 'resolved'),
      )
    }
    return true
  }

  /** The stored state is newer than this read: only acknowledges the hint. */
  const writeNothing = async (entry: ReadEntry, known: KnownSession): Promise<boolean> => {
    const { session, revision, baseline, atRest } = known
    const reading = asItIs(session, { revision, baseline, atRest, at: clock.now() })
    const unseen = expectations.weigh(session, known.turns, known)
    const hint = hintAfter(entry, known, clock.steady(), { unseen })
    return await write(entry, { ...reading, hint })
  }

  const writeGone = async (entry: ReadEntry, sessionId: string): Promise<boolean> => {
    expectations.forget(sessionId)
    frameWaits.keep(sessionId, [])
    const known = await store.resources.known(sessionId)
    options.calls.look({ sessionId, session: null, stored: known?.actions ?? [], begunAt: clock.steady() })
    const isKnown = known !== null && !known.deleted
    if (ownership.filter.active && !isKnown && (await ownership.noted(sessionId))?.owner !== 'ours') {
      // The owner of a deleted session cannot be found any more.
      await ownership.note(sessionId, 'gone')
      return true
    }
    const hint = { claim: entry.claim, lookAfter: null, scope: 'session' as const }
    const context = { now: clock.now(), seen: firstOf(entry.seen, clock.now()) }
    const reading = { ...diffGone(sessionId, known, context), hint }
    if (isKnown) return await write(entry, reading)
    await intake.commit({ readings: [reading] })
    return true
  }

  return {
    read: (entry, sessionId, listed) => read(entry, sessionId, listed, null),
    async readFirst(session, since) {
      await read(FIRST, session.id, session, since)
    },
    async takeFirst(session, since) {
      const { id: sessionId } = session
      const at = clock.now()
      const baseline = baselineOf(session, since)
      // A session that was created after the first start makes facts, whenever it is read.
      if (baseline === 0)
        return await intake.hint([{ sessionId, channel: 'poll', at, scope: 'turns', delay: 0 }])
      const hint = { claim: null, lookAfter: 0, scope: 'turns' as const }
      await intake.commit({
        readings: [{ ...asItIs(session, { revision: null, baseline, atRest: false, at }), hint }],
      })
    },
  }
}

/**
 * The session, if it is known without a request: the stored one when only artifacts are awaited, or the listed one
 * unless it is older than the store.
 */
function atHand(
  { scope }: Pick<ReadEntry, 'scope'>,
  before: KnownSession | null,
  listed: Session | undefined,
  latest: number,
): Session | undefined {
  if (scope === 'artifacts' && before !== null && !before.deleted) return before.session
  return listed === undefined || isOlder(listed, before, latest) ? undefined : listed
}

/**
 * Whether `seen` is older than the stored state. `latest`: the latest time (service clock) at which anything can have
 * changed. If the stored time is later, it is wrong, or the service's clock was set back since: then it is not
 * compared.
 */
function isOlder(seen: Session, known: KnownSession | null, latest: number): known is KnownSession {
  if (known === null) return false
  const { updatedAt } = known.session
  return seen.updatedAt < updatedAt && updatedAt <= latest
}

/** Keeps the first channel that announced the change; without any, polling found it. */
function firstOf(seen: HintedSession['seen'], now: number): HintedSession['seen'] {
  const [first] = Object.entries(seen).sort(([, a], [, b]) => a - b)
  return first === undefined ? { poll: now } : { [first[0]]: first[1] }
}

/** Adds each read to the trace of its session, which may be known only after the read. */
export function traced(
  reader: SessionReader,
  { tracer, clock, traceOf }: { tracer: Tracer; clock: Clock; traceOf: (sessionId: string) => TraceSource },
): SessionReader {
  return {
    ...reader,
    async read(entry, sessionId, listed) {
      const since = clock.now()
      const end = (fault: string | null): void =>
        tracer
          .start('reading', traceOf(sessionId), () => ({ 'session_sidecar.session.id': sessionId }), since)
          .end(fault)
      try {
        const done = await reader.read(entry, sessionId, listed)
        end(null)
        return done
      } catch (error) {
        end(messageOf(error))
        throw error
      }
    },
  }
}
