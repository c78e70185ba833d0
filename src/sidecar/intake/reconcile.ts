import PQueue from 'p-queue'
import type { Bus, Subscriber } from '../../core/bus.ts'
import { backoff } from '../../std/backoff.ts'
import { isParticular, ServiceError } from '../../core/errors.ts'
import { messageOf } from '../../std/errors.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { createPollLoop, type PollLoop } from '../../std/poll-loop.ts'
import type { Session } from '../../core/resource.ts'
import { createCircuitBreaker } from '../../std/circuit-breaker.ts'
import type { HintedSession, Store } from '../../core/store.ts'
import { traceIdOf, type TraceSource } from '../../core/trace.ts'
import { PAGE, PATIENCE } from './look.ts'
import type { SessionReader } from './read.ts'
import type { Sweep } from './sweep.ts'

/** Sessions read at the same time: the client has a limit of its own, this one keeps the queue short before it. */
const READERS = 8
/** From so many dirty sessions on, one page of the list is cheaper than reading each session. */
const LIST_FROM = 3
/** Milliseconds. */
const FAILED = { base: 500, max: 60_000 }

export interface Reconciler extends Required<Pick<Subscriber, 'hintsAdded'>> {
  start(): void
  /** Lets readings under way end, for `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  /** The first look at the service is under way, or a reading of it: no hint in the store tells of that. */
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
  bus: Pick<Bus, 'looked' | 'swept'>
}

/**
 * Takes dirty sessions from the queue and has them read. A hint that comes while a session is read marks it dirty again,
 * so nothing is missed and nothing is read twice at once (client-go's workqueue is the model).
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { service, store, bus, reader, sweep, clock, random, log } = options
  const readers = new PQueue({ concurrency: READERS })
  const rest = createCircuitBreaker(
    options,
    'reconcile: the store refuses writes; nothing is read until it takes them',
  )
  /** First looks under way, and readings that one has begun: they may outlive it. */
  let looking = 0
  let firstFailures = 0
  /** Steady milliseconds: the first look is tried again then. */
  let firstRetry = 0

  const waitAfter = (error: unknown, failures: number): number =>
    backoff(FAILED, failures, random, Math.max(FAILED.base, retryAfterOf(error)))

  const room = (): number => (rest.trying ? 1 : READERS * 2) - readers.size - readers.pending

  const claim = async (): Promise<void> => {
    if (!service.authorized()) return
    // Until the first look is through nobody can tell what is new.
    if (!(await sweep.looked()) && !(await firstLook())) return
    for (;;) {
      if (rest.until > clock.steady()) return
      const free = room()
      const dirty = free <= 0 || !pollLoop.running ? [] : await store.hints.claim(free)
      const alone = dirty.filter(({ sessionId, scope }) => sessionId !== null && scope !== 'artifacts')
      const prefetch = alone.length >= LIST_FROM ? listOnce() : null
      for (const entry of dirty) void readers.add(() => take(entry, prefetch))
      if (dirty.length === 0) return
    }
  }

  const pollLoop: PollLoop = createPollLoop({
    clock,
    pass: claim,
    async next() {
      if (!service.authorized()) return null
      if (!(await sweep.looked())) return firstRetry - clock.steady()
      if (rest.until > clock.steady()) return rest.until - clock.steady()
      // The first reading that ends wakes it.
      return room() <= 0 ? null : await store.hints.nextDue()
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

  /** One session that cannot be read does not hold up all others for long. */
  const readFirst = async (session: Session): Promise<void> => {
    try {
      await reader.readFirst(session)
    } catch (error) {
      if (firstFailures < PATIENCE || !isParticular(error)) throw error
      const { id: sessionId } = session
      log.warn(
        { sessionId, ...problemOf(error) },
        'reconcile: a session cannot be read, and is taken as the list shows it',
      )
      await reader.takeFirst(session)
    }
  }

  const firstLook = async (): Promise<boolean> => {
    if (clock.steady() < firstRetry) return false
    try {
      await counted(() => sweep.firstLook((session) => counted(() => readers.add(() => readFirst(session)))))
    } catch (error) {
      if (!pollLoop.running) return false
      firstRetry = clock.steady() + waitAfter(error, ++firstFailures)
      log.warn(problemOf(error), 'reconcile: the first look at the service failed, will try again')
      bus.looked(false)
      return false
    }
    if (!pollLoop.running) return false
    const done = await sweep.looked()
    // The list kept changing under its cursor: it is not walked again without a pause.
    if (!done) firstRetry = clock.steady() + waitAfter(null, ++firstFailures)
    bus.looked(done)
    return done
  }

  /** The first page of the list, shared by all readings of one round; a session that is not on it is read alone. */
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
    try {
      if (sessionId === null) {
        await sweep.run(entry.scope === 'turns', entry.seen)
        await store.hints.finishSweep(entry.generation)
        bus.swept(null)
      } else {
        const listed = prefetch === null ? undefined : (await prefetch()).get(sessionId)
        if (await reader.read(entry, sessionId, listed)) await store.hints.release(sessionId)
      }
      rest.end()
    } catch (error) {
      await failed(entry, error)
    }
    pollLoop.wake()
  }

  const failed = async (entry: HintedSession, error: unknown): Promise<void> => {
    const { sessionId } = entry
    // Its hint is still there and is read after the next start; the store may be closed by now.
    if (!pollLoop.running) return await store.hints.release(sessionId)
    const wait = waitAfter(error, entry.failures + 1)
    try {
      await store.hints.retry(sessionId, wait)
    } catch (cause) {
      await store.hints.release(sessionId)
      return rest.refused(cause)
    }
    rest.end()
    if (sessionId === null) bus.swept(messageOf(error))
    const details = {
      sessionId,
      ...(sessionId === null ? {} : { trace_id: traceIdOf(options.traceOf(sessionId)) }),
      wait,
      ...problemOf(error),
    }
    if (error instanceof ServiceError) log.warn(details, 'reconcile: a reading failed, will try again')
    else log.error({ ...details, err: error }, 'reconcile: a reading failed, will try again')
  }

  return {
    start() {
      service.onAuthorization((authorized) => {
        if (authorized) pollLoop.wake()
      })
      pollLoop.start()
    },
    async stop(grace) {
      pollLoop.stop()
      readers.clear()
      // A reading that hangs is read again after the next start: its hint is still there.
      const { promise, resolve } = Promise.withResolvers<void>()
      const limit = clock.after(grace, resolve)
      await Promise.race([readers.onIdle(), promise])
      limit.cancel()
    },
    hintsAdded: () => pollLoop.wake(),
    looksFirst: () => looking > 0,
  }
}

function retryAfterOf(error: unknown): number {
  return error instanceof ServiceError ? (error.retryAfter ?? 0) : 0
}

function problemOf(error: unknown): object {
  if (!(error instanceof ServiceError)) return { error: messageOf(error) }
  return { code: error.code, status: error.status, requestId: error.requestId, error: error.message }
}
