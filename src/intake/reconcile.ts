import PQueue from 'p-queue'
import { ServiceError, messageOf } from '../core/errors.ts'
import { backoff } from '../core/backoff.ts'
import type { Clock, Log, Random, Service, Timer } from '../core/ports.ts'
import type { JsonObject } from '../core/json.ts'
import { isSettled, type Session } from '../core/resource.ts'
import type { DirtySession, KnownSession, KnownTurn, Reading, Store } from '../core/store.ts'
import { baselineOf, compare, compareGone, type DiffContext } from './diff.ts'
import type { Intake } from './intake.ts'
import type { Items } from './items.ts'
import { needsTurns, PAGE, readErrorItem, readTurns } from './look.ts'
import type { Sweep } from './sweep.ts'

/** Sessions read at the same time: the client has a limit of its own, this one keeps the queue short before it. */
const READERS = 8
/** From so many dirty sessions on, one page of the list is cheaper than reading each session. */
const LIST_FROM = 3
/** A nudge makes a reading prompt, this timer makes it certain, milliseconds. */
const IDLE_LOOK = 5000
/** How long a turn's end waits for the stream's turn.ended (product.md, Facts), milliseconds. */
const FRAME_WAIT = 2000
/** A session that is not at rest is looked at again though nobody hinted, milliseconds. */
const SAFETY_LOOK = 300_000
const FAILED = { base: 500, max: 60_000 }
/** Artifacts are polled sooner at first: most settle within a second or two. */
const ARTIFACTS = { base: 400, max: 300_000 }
/** Turns whose end waits for a frame are few; more than so many at once wait no longer. */
const WAITING_KEPT = 10_000

export interface Reconciler {
  start(): void
  stop(): Promise<void>
  nudge(): void
  /** Reads a session now, outside the queue, for who needs its actions fresh. null: it is gone. */
  refresh(sessionId: string): Promise<Session | null>
}

export interface ReconcilerOptions {
  service: Service
  store: Store
  intake: Intake
  sweep: Sweep
  items: Items | null
  clock: Clock
  random: Random
  log: Log
  tools: () => ReadonlySet<string>
  /** The stream is connected: it tells of turns, and its turn.ended frames come. */
  streamConnected: () => boolean
  /** Our wall clock: when this sidecar started. */
  startedAt: () => number
  /** The first look at the service is through, or failed and will be tried again. */
  onFirstLook: (done: boolean) => void
  /** Actions that a reading found gone. */
  onActionsGone: (callIds: readonly string[], why: 'resolved' | 'deleted') => void
}

/**
 * Takes dirty sessions from the queue, reads them, and commits what changed. A hint that comes while a session is read
 * marks it dirty again, so nothing is missed and nothing is read twice at once (client-go's workqueue is the model).
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { service, store, intake, sweep, items, clock, random, log } = options
  const readers = new PQueue({ concurrency: READERS })
  const finalSince = new Map<string, number>()
  let running = false
  let pumping = false
  let again = false
  let timer: Timer | null = null
  let firstFailures = 0
  let firstRetry = 0

  const pump = async (): Promise<void> => {
    if (pumping || !running) {
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
      log.error({ err: error }, 'reconcile: the queue could not be read')
    } finally {
      pumping = false
    }
    await rest()
  }

  const claim = async (): Promise<void> => {
    const room = READERS * 2 - readers.size - readers.pending
    if (room <= 0 || !service.authorized()) return
    // Until the first look is through nobody can tell what is new.
    if (!(await sweep.looked())) return clock.steady() < firstRetry ? undefined : await firstLook()
    const dirty = await store.claimHints(room, clock.steady())
    const alone = dirty.filter(({ sessionId }) => sessionId !== null)
    const prefetch = alone.length >= LIST_FROM ? listOnce() : null
    for (const entry of dirty) {
      void readers.add(() =>
        entry.sessionId === null ? look(entry) : read(entry, entry.sessionId, prefetch),
      )
    }
    if (dirty.length === room) again = true
  }

  const firstLook = async (): Promise<void> => {
    try {
      await sweep.firstLook((session) => readers.add(() => readSession(FIRST, session.id, session, true)))
      again = true
    } catch (error) {
      firstFailures++
      firstRetry =
        clock.steady() + Math.max(FAILED.base, backoff(FAILED, firstFailures, random, retryAfterOf(error)))
      log.warn(problemOf(error), 'reconcile: the first look at the service failed, will try again')
      options.onFirstLook(false)
      return
    }
    options.onFirstLook(true)
  }

  const rest = async (): Promise<void> => {
    timer?.cancel()
    if (!running) return
    const next = await store.nextHint().catch(() => null)
    const due = Math.max(next ?? Number.POSITIVE_INFINITY, firstRetry)
    const wait = Math.min(IDLE_LOOK, Math.max(0, due - clock.steady()))
    timer?.cancel()
    if (running) timer = clock.after(service.authorized() ? wait : IDLE_LOOK, () => void pump())
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

  const look = async (entry: DirtySession): Promise<void> => {
    try {
      await sweep.run(entry.scope === 'turns', entry.seen)
      await store.finishSweep(entry.generation)
      void pump()
    } catch (error) {
      await failed(entry, error)
    }
  }

  const read = async (
    entry: DirtySession,
    sessionId: string,
    prefetch: (() => Promise<Map<string, Session>>) | null,
  ): Promise<void> => {
    try {
      const listed = prefetch === null ? undefined : (await prefetch()).get(sessionId)
      await readSession(entry, sessionId, listed)
      store.doneHint(sessionId)
      void pump()
    } catch (error) {
      await failed(entry, error)
    }
  }

  const failed = async (entry: DirtySession, error: unknown): Promise<void> => {
    const wait = Math.max(FAILED.base, backoff(FAILED, entry.failures + 1, random, retryAfterOf(error)))
    const details = { sessionId: entry.sessionId, wait, ...problemOf(error) }
    if (error instanceof ServiceError) log.warn(details, 'reconcile: a reading failed, will try again')
    else log.error({ ...details, err: error }, 'reconcile: a reading failed, will try again')
    await store.releaseHint(entry.sessionId, clock.steady() + wait).catch((cause: unknown) => {
      store.doneHint(entry.sessionId)
      log.error({ err: cause }, 'reconcile: the store refused to note a failed reading')
    })
    void rest()
  }

  const readSession = async (
    entry: DirtySession,
    sessionId: string,
    listed: Session | undefined,
    firstLook = false,
  ): Promise<void> => {
    const before = await store.known(sessionId)
    // A page of the list may be older than what we read since.
    const usable = listed !== undefined && (before === null || listed.updatedAt >= before.updatedAt)
    const session = usable ? listed : await readAlive(sessionId)
    if (session === null) return await writeGone(entry, sessionId)
    if (before !== null && session.updatedAt < before.updatedAt) return await writeNothing(entry, before)
    const startedAt = options.startedAt() + service.clockOffset()
    const placeholders = await store.knownTurns(sessionId, [])
    const streamTells = options.streamConnected()
    const baseline = before?.baseline ?? baselineOf(session, { firstLook, startedAt })
    const turns = needsTurns(before, session, entry.scope === 'turns', streamTells)
      ? await readTurns(service, sessionId, before?.turns ?? placeholders, baseline)
      : null
    const startFailed =
      session.status === 'failed' && before?.status !== 'failed' && !turns?.some(isNewFailure(before))
    const errorItem = startFailed ? await readErrorItem(service, sessionId) : null
    const settledNow = (turns ?? []).some((turn) => isSettled(turn) && !before?.turns.some(isKnownSettled(turn.id)))
    const artifacts = settledNow ? await readArtifacts(sessionId) : null
    // What the stream committed while we read counts: its turn.ended frame may have come.
    const ids = (turns ?? []).map(({ id }) => id)
    const known = await store.known(sessionId, ids)
    const context: DiffContext = {
      now: clock.now(),
      steady: clock.steady(),
      seen: firstOf(entry.seen),
      firstLook,
      startedAt,
      tools: options.tools(),
      frameWait: { connected: streamTells && !firstLook && finalSince.size < WAITING_KEPT, ms: FRAME_WAIT },
    }
    const difference = compare(
      known,
      await store.knownTurns(sessionId, ids),
      { session, turns, errorItem },
      context,
      finalSince,
    )
    if (difference.waitUntil !== null) {
      for (const { turn, finalReadAt } of difference.reading.turns)
        finalSince.set(turn.id, finalReadAt ?? context.steady)
      await store.releaseHint(sessionId, difference.waitUntil)
      return
    }
    const nextLook = nextLookAt(difference.collecting, difference.reading.atRest, context.steady)
    await write(entry, {
      ...difference.reading,
      hint: {
        generation: entry.generation,
        nextLook,
        scope: difference.collecting.length > 0 ? 'turns' : 'session',
      },
    })
    if (items !== null) await items.read(sessionId, difference.reading.baseline)
  }

  const write = async (entry: DirtySession, reading: Reading): Promise<void> => {
    if (!(await intake.reading(reading))) {
      if (entry !== FIRST) await store.releaseHint(entry.sessionId, clock.steady())
      return
    }
    for (const { turn } of reading.turns) finalSince.delete(turn.id)
    if (reading.resolved.length > 0) {
      options.onActionsGone(reading.resolved, reading.session === null ? 'deleted' : 'resolved')
    }
  }

  /** What we know is newer than what we were told: only the hint is done with. */
  const writeNothing = async (entry: DirtySession, known: KnownSession): Promise<void> => {
    await intake.commit({
      readings: [
        {
          sessionId: known.session.id,
          revision: known.revision,
          session: known.session,
          baseline: known.baseline,
          atRest: known.atRest,
          turns: [],
          opened: [],
          resolved: [],
          newCalls: [],
          facts: [],
          at: clock.now(),
          hint: { generation: entry.generation, nextLook: null, scope: entry.scope },
        },
      ],
    })
  }

  const writeGone = async (entry: DirtySession, sessionId: string): Promise<void> => {
    const known = await store.known(sessionId)
    const hint = { generation: entry.generation, nextLook: null, scope: 'session' as const }
    if (known === null || known.deleted) {
      const nothing = {
        session: null,
        baseline: 0,
        atRest: true,
        turns: [],
        opened: [],
        resolved: [],
        newCalls: [],
        facts: [],
      }
      await intake.commit({
        readings: [{ ...nothing, sessionId, revision: known?.revision ?? null, at: clock.now(), hint }],
      })
      return
    }
    const context = { now: clock.now(), seen: firstOf(entry.seen) } as DiffContext
    await write(entry, { ...compareGone(known, context), hint })
  }

  const readAlive = async (sessionId: string): Promise<Session | null> => {
    try {
      return await service.readSession(sessionId)
    } catch (error) {
      if (error instanceof ServiceError && error.notFound) return null
      throw error
    }
  }

  /** A token without the scope, or a service without the route, costs the list and not the fact. */
  const readArtifacts = async (sessionId: string): Promise<JsonObject[] | null> => {
    try {
      return await service.listArtifacts(sessionId)
    } catch (error) {
      if (!(error instanceof ServiceError) || error.transient || error.unauthorized) throw error
      log.warn({ sessionId, ...problemOf(error) }, 'reconcile: the artifacts cannot be listed')
      return null
    }
  }

  const nextLookAt = (
    collecting: readonly { finalReadAt: number | null }[],
    atRest: boolean,
    steady: number,
  ): number | null => {
    if (collecting.length === 0) return atRest ? null : steady + SAFETY_LOOK
    // Twice as long as we have waited already, so that the readings thin out.
    const youngest = Math.min(...collecting.map(({ finalReadAt }) => steady - (finalReadAt ?? steady)))
    return steady + Math.min(ARTIFACTS.max, Math.max(ARTIFACTS.base, youngest))
  }

  return {
    start() {
      running = true
      void pump()
    },
    async stop() {
      running = false
      timer?.cancel()
      readers.clear()
      await readers.onIdle()
    },
    nudge() {
      void pump()
    },
    refresh: readAlive,
  }
}

function isNewFailure(known: KnownSession | null): (turn: { id: string; status: string }) => boolean {
  const over = new Set(known?.turns.filter(({ final }) => final).map(({ turn }) => turn.id))
  return (turn) => turn.status !== 'working' && turn.status !== 'completed' && !over.has(turn.id)
}

function isKnownSettled(id: string): (known: KnownTurn) => boolean {
  return ({ turn, settled }) => settled && turn.id === id
}

/** The channel that told us first is the one that found it. */
function firstOf(seen: DirtySession['seen']): DirtySession['seen'] {
  const [first] = Object.entries(seen).sort(([, a], [, b]) => a - b)
  return first === undefined ? {} : { [first[0]]: first[1] }
}

/** The entry under which the first look reads a session: no hint made it. */
const FIRST: DirtySession = { sessionId: null, generation: -1, scope: 'turns', seen: {}, failures: 0 }

function retryAfterOf(error: unknown): number {
  return error instanceof ServiceError ? (error.retryAfter ?? 0) : 0
}

function problemOf(error: unknown): object {
  if (!(error instanceof ServiceError)) return { error: messageOf(error) }
  return { code: error.code, status: error.status, requestId: error.requestId, error: error.message }
}
