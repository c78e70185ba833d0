import type { Bus, Subscriber } from '../../core/bus.ts'
import type { Call } from '../../core/call.ts'
import { ServiceError, isParticular } from '../../core/errors.ts'
import type { Hint } from '../../core/hint.ts'
import type { Service } from '../../core/ports.ts'
import { isFinal, isSettled, type Action, type Session, type Turn } from '../../core/resource.ts'
import type { HintedSession, KnownSession, KnownTurn, Store } from '../../core/store.ts'
import { messageOf } from '../../std/errors.ts'
import type { JsonObject } from '../../std/json.ts'
import type { Clock, Log } from '../../std/ports.ts'
import { baselineOf, callsOf, type Snapshot } from './diff.ts'
import { QUIET } from './schedule.ts'

/** The service's largest page. */
export const PAGE = 100
/** Turns are read newest first and most readings end on the first page. */
const TURNS_FIRST = 20
/** Pages of turns in one reading: 10,000 turns since the last one. What is older is found by its own id. */
const TURN_PAGES = 100
/** Readings of a session that may fail for want of what only goes with its facts. */
export const PATIENCE = 3
/** Readings ahead at once; with more to read, the list may be the cheaper way. */
const AT_ONCE = 2
/** One that nobody came for in this time is old news, milliseconds. */
const FRESH = 1000
/** A session that such a reading finds gone is read so much later, milliseconds. */
const GONE_DELAY = 100
/** So often a session is read again that moved on while its turns were read. */
const REREAD = 3

export interface SnapshotOptions {
  service: Service
  store: Store
  clock: Clock
  log: Log
  /** Names of the function tools that we run. */
  tools: ReadonlySet<string>
  /** Tools have to hear whose call they get before the session is stored. */
  bus: Pick<Bus, 'sessionRead' | 'actionsGone'>
  /** Takes on calls that a reading found. */
  takeCalls: (calls: readonly Call[]) => Promise<void>
  /** Turns of a session that a channel announced. */
  expectedTurns: (sessionId: string) => readonly string[]
}

/** One reading of a session. */
export interface ReadRequest {
  entry: HintedSession
  /** What we knew when it began. */
  before: KnownSession | null
  firstLook: boolean
  /** Service clock, milliseconds: when this sidecar started. */
  startedAt: number
  streamTells: boolean
}

/** Reads on from the session, `first`: all that a comparison needs. null: the session is gone. */
export type Snapshots = (request: ReadRequest, first: Session) => Promise<Snapshot | null>

export function createSnapshots(options: SnapshotOptions): Snapshots {
  const { service, store, bus, clock, log } = options

  /** Calls that are new are taken on at once: their tools run while the turns are read. @returns their ids. */
  const takeCalls = async (before: KnownSession | null, session: Session): Promise<string[]> => {
    const known = new Set(before?.actions.map(({ callId }) => callId))
    const context = { tools: options.tools, now: clock.now(), steady: clock.steady() }
    const newCalls = callsOf(session, context).filter(({ callId }) => !known.has(callId))
    if (newCalls.length === 0) return []
    bus.sessionRead(session)
    await options.takeCalls(newCalls)
    return newCalls.map(({ callId }) => callId)
  }

  /** Calls that were over before their turns were read: where the reading fails none ever finds them gone. */
  const tellOver = (taken: readonly string[], session: Session | null): void => {
    const open = new Set(session?.actions.map(({ callId }) => callId))
    const over = taken.filter((callId) => !open.has(callId))
    if (over.length > 0) bus.actionsGone(over, session === null ? 'deleted' : 'resolved')
  }

  /**
   * The turns are read after the session, and things go on in between: a turn that has ended meanwhile waits for nothing
   * any more, and an action of a turn that is not in the list is not told before it. null: the session is gone.
   */
  const readBoth = async (
    first: Session,
    knownTurns: readonly KnownTurn[],
    baseline: number,
  ): Promise<Pick<Snapshot, 'session' | 'turns' | 'passed'> | null> => {
    let session: Session | null = first
    const seen = new Map<string, Action>()
    for (let attempt = 0; ; attempt++) {
      for (const action of session.actions) seen.set(action.callId, action)
      const turns = await turnsOf(session.id, knownTurns, baseline)
      if (turns === null) return null
      if (attempt === REREAD || agree(session, turns)) {
        for (const { callId } of session.actions) seen.delete(callId)
        return { session, turns, passed: [...seen.values()] }
      }
      session = await readSession(service, session.id)
      if (session === null) return null
    }
  }

  /** null: they are not there, and nor is their session; where only they were asked for, nobody would ever notice. */
  const turnsOf = async (sessionId: string, known: readonly KnownTurn[], baseline: number) => {
    try {
      return await readTurns(service, sessionId, known, baseline)
    } catch (error) {
      if (await isGone(service, error, sessionId)) return null
      throw error
    }
  }

  return async ({ before, entry, ...request }, first) => {
    const taken = await takeCalls(before, first)
    const knownTurns = before?.turns ?? (await store.resources.knownTurns(first.id, []))
    const baseline = before?.baseline ?? baselineOf(first, request)
    const both = needsTurns(before, first, entry.scope !== 'session', request.streamTells)
      ? await readBoth(first, knownTurns, baseline)
      : { session: first, turns: null, passed: [] }
    tellOver(taken, both?.session ?? null)
    if (both === null) return null
    const { session, turns } = both
    const errorItem = await readStartFailure(service, session, {
      known: before,
      turns,
      failures: entry.failures,
    })
    // What the stream committed while we read counts: its turn.ended frame may have come.
    const ids = [
      ...(turns ?? []).map(({ id }) => id),
      ...both.passed.flatMap(({ turnId }) => turnId ?? []),
      ...options.expectedTurns(session.id),
    ]
    const known = await store.resources.known(session.id, ids)
    const placeholders = known === null ? await store.resources.knownTurns(session.id, ids) : []
    const settles = settlesAnew(turns ?? [], known?.turns ?? placeholders)
    const artifacts = settles ? await readArtifacts(service, session.id, entry.failures, log) : null
    if (artifacts === 'gone') return null
    return { ...both, known, placeholders, errorItem, artifacts }
  }
}

/** Whether each action is of a turn that was read, and that goes on. */
function agree(session: Session, turns: readonly Turn[]): boolean {
  const read = new Map(turns.map((turn) => [turn.id, turn]))
  return session.actions.every(({ turnId }) => {
    const turn = turnId === null ? undefined : read.get(turnId)
    return turnId === null || (turn !== undefined && !isFinal(turn))
  })
}

/** null: it is gone. */
export async function readSession(service: Service, sessionId: string): Promise<Session | null> {
  try {
    return await service.readSession(sessionId)
  } catch (error) {
    if (error instanceof ServiceError && error.notFound) return null
    throw error
  }
}

/**
 * Turns that may have news: from the newest back to the first that we know to be settled, or to those that rested long
 * before us: one whose artifacts are pending may lie behind others that are at rest. Turns that we know to be unsettled
 * and that lie further back are read one by one.
 */
async function readTurns(
  service: Service,
  sessionId: string,
  known: readonly KnownTurn[],
  baseline: number,
): Promise<Turn[]> {
  const settled = new Set(known.filter((entry) => entry.settled).map(({ turn }) => turn.id))
  const missing = new Set(known.filter((entry) => !entry.settled).map(({ turn }) => turn.id))
  const turns: Turn[] = []
  let after: string | undefined
  for (let page = 0; page < TURN_PAGES; page++) {
    const limit = page === 0 ? TURNS_FIRST : PAGE
    const { data, hasMore, lastId } = await service.listTurns(
      sessionId,
      after === undefined ? { limit } : { limit, after },
    )
    for (const turn of data) {
      turns.push(turn)
      missing.delete(turn.id)
    }
    // The order of the list is not promised to be that of creation: one old turn says nothing, a whole page does.
    const news = data.some(
      (turn) =>
        !settled.has(turn.id) &&
        !(isSettled(turn) && (turn.completedAt ?? turn.createdAt ?? 0) <= baseline - QUIET),
    )
    if (!hasMore || lastId === null || lastId === after) return turns
    // A page of which nothing can be read says nothing.
    const enough =
      (data.length > 0 && !news) || (settled.size > 0 && data.some((turn) => settled.has(turn.id)))
    // Where single turns cannot be read, the list goes back to the last of them.
    if (enough && (await readAlone(service, sessionId, missing, turns))) return turns
    after = lastId
  }
  await readAlone(service, sessionId, missing, turns)
  return turns
}

/** Moves what can be read of `missing` to `turns`. @returns whether that was all. */
async function readAlone(
  service: Service,
  sessionId: string,
  missing: Set<string>,
  turns: Turn[],
): Promise<boolean> {
  for (const id of missing) {
    const turn = await readTurn(service, sessionId, id)
    if (turn === null) return false
    if (turn !== 'none') turns.push(turn)
    missing.delete(id)
  }
  return true
}

/** null: single turns cannot be read. `none`: a frame named it, or it was there once, and its session does not have it. */
async function readTurn(service: Service, sessionId: string, id: string): Promise<Turn | null | 'none'> {
  try {
    return await service.readTurn(sessionId, id)
  } catch (error) {
    if (!(error instanceof ServiceError && error.notFound) || (await isGone(service, error, sessionId)))
      throw error
    return 'none'
  }
}

/**
 * A token without the scope, or a service without the route, costs the list and not the fact; so does a list that cannot be
 * read for long. `failures`: readings of the session that failed in a row.
 * @returns null when the list cannot be had.
 */
async function readArtifacts(
  service: Service,
  sessionId: string,
  failures: number,
  log: Log,
): Promise<JsonObject[] | null | 'gone'> {
  try {
    return await service.listArtifacts(sessionId)
  } catch (error) {
    if (await isGone(service, error, sessionId)) return 'gone'
    if (!(error instanceof ServiceError)) throw error
    const passes = error.code !== 'route_unknown' && (error.transient || error.unauthorized)
    if (passes && !(failures >= PATIENCE && isParticular(error))) throw error
    log.debug(
      { sessionId, code: error.code, error: messageOf(error) },
      'reconcile: the artifacts cannot be listed',
    )
    return null
  }
}

/** Whether what was asked for is not there because its session is not. */
async function isGone(service: Service, error: unknown, sessionId: string): Promise<boolean> {
  return error instanceof ServiceError && error.notFound && (await readSession(service, sessionId)) === null
}

/**
 * The newest item that tells of an error, where a run could not start: there is no turn to say so, and the session may have
 * failed before. What is no later than a turn's end or a failure that we know of is about that. `failures`: as above.
 */
async function readStartFailure(
  service: Service,
  session: Session,
  { known, turns, failures }: { known: KnownSession | null; turns: readonly Turn[] | null; failures: number },
): Promise<JsonObject | null> {
  const before = known?.status === 'failed' ? known.updatedAt : null
  if (session.status !== 'failed' || (before !== null && session.updatedAt <= before)) return null
  if (turns?.some(isNewFailure(known)) === true) return null
  const read = (known?.turns ?? []).filter((entry) => entry.read).map(({ turn }) => turn)
  const ends = [...read, ...(turns ?? [])]
    .filter(isFinal)
    .map(({ completedAt, createdAt }) => completedAt ?? createdAt ?? 0)
  const since = Math.max(before ?? 0, ...ends)
  const { data } = await service.listItems(session.id, { limit: 10 }).catch((error: unknown) => {
    if (failures >= PATIENCE && isParticular(error)) return { data: [] }
    throw error
  })
  const newest = data.toSorted((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0))
  const errors = newest.filter((item) => item.type.includes('error') || item.event === 'agent.error')
  return errors.find(({ createdAt }) => createdAt === null || createdAt > since)?.raw ?? null
}

/** Whether the turns must be read too, or the session alone tells what there is to know. */
function needsTurns(
  known: KnownSession | null,
  session: Session,
  asked: boolean,
  streamTells: boolean,
): boolean {
  if (asked || known === null || known.deleted) return true
  // An action of a turn that we never read: its start has to be told first.
  const read = new Set(known.turns.filter((turn) => turn.read).map(({ turn }) => turn.id))
  if (session.actions.some(({ turnId }) => turnId !== null && !read.has(turnId))) return true
  const unsettled = known.turns.some((turn) => !turn.settled)
  if (session.status === 'idle' || session.status === 'failed') {
    return unsettled || known.status !== session.status || !streamTells
  }
  if (known.status === 'idle' || known.status === 'failed') return true
  // While the stream is up, its frames ask for the turns when there is something to see.
  return !streamTells && known.updatedAt !== session.updatedAt
}

/** What needs no reading: a session whose artifacts alone are awaited, or a page of the list that is no older than what we know. */
export function atHand(
  { scope }: HintedSession,
  before: KnownSession | null,
  listed: Session | undefined,
  latest: number,
): Session | undefined {
  if (scope === 'artifacts' && before !== null && !before.deleted) return before.session
  return listed === undefined || isOlder(listed, before, latest) ? undefined : listed
}

/** Whether a turn settled that was not known to be. */
function settlesAnew(turns: readonly Turn[], known: readonly KnownTurn[]): boolean {
  const over = new Set(known.filter(({ settled }) => settled).map(({ turn }) => turn.id))
  return turns.some((turn) => isSettled(turn) && !over.has(turn.id))
}

/** Tells of turns that ended otherwise than well, and were not known to have ended. */
function isNewFailure(known: KnownSession | null): (turn: Turn) => boolean {
  const over = new Set(known?.turns.filter(({ final }) => final).map(({ turn }) => turn.id))
  return (turn) => isFinal(turn) && turn.status !== 'completed' && !over.has(turn.id)
}

/**
 * What was seen is older than what we know by now. `latest`: service clock, the last moment at which something can have
 * changed. What we know to be later was never true, or the service's clock was set back since: nothing is measured by it.
 */
export function isOlder(seen: Session, known: KnownSession | null, latest: number): known is KnownSession {
  return known !== null && seen.updatedAt < known.updatedAt && known.updatedAt <= latest
}

/**
 * Readings that begin while their hint is still on its way to disk: what is urgent waits for the longer of the two, not
 * for their sum. A reading answers only hints that were there before it began, so a later hint drops it.
 */
export interface Prefetch extends Required<Pick<Subscriber, 'hinted' | 'looked'>> {
  /** The reading of a session that is under way or done; nobody else gets it. null in it: the session is gone. */
  take(sessionId: string): Promise<Session | null> | undefined
}

interface ReadingAhead {
  session: Promise<Session | null>
  /** Steady milliseconds. */
  begunAt: number
  taken: boolean
}

export function createPrefetch(options: {
  clock: Clock
  service: Service
  hint: (hints: readonly Hint[]) => Promise<void>
  log: Log
}): Prefetch {
  const { clock, service, hint, log } = options
  const readings = new Map<string, ReadingAhead>()
  /** Before the first look nobody can tell what is new, and dirty sessions are not read. */
  let looked = false

  const isOld = ({ begunAt }: ReadingAhead): boolean => clock.steady() - begunAt > FRESH

  /** Not at once: the hint begins no reading ahead of its own. */
  const noteGone = (sessionId: string): void => {
    hint([{ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: GONE_DELAY }]).catch(
      (error: unknown) => log.error({ err: error }, 'reconcile: a session that is gone could not be noted'),
    )
  }

  const begin = (sessionId: string): void => {
    for (const [id, reading] of readings) if (isOld(reading)) readings.delete(id)
    if (readings.size >= AT_ONCE || !looked || !service.authorized()) return
    const reading = { session: readSession(service, sessionId), begunAt: clock.steady(), taken: false }
    readings.set(sessionId, reading)
    reading.session.then(
      (session) => {
        // No news tells of a session that is gone, and its hint may be done with already.
        if (session === null && !reading.taken) noteGone(sessionId)
      },
      // The reader that takes it sees its failure; one that is not taken may fail unseen.
      () => undefined,
    )
  }

  return {
    looked(done) {
      looked = done
    },
    hinted(_, hints) {
      for (const { sessionId } of hints) if (sessionId !== null) readings.delete(sessionId)
      const urgent = hints.filter(({ delay, sessionId }) => delay === 0 && sessionId !== null)
      if (urgent.length > AT_ONCE) return
      for (const { sessionId } of urgent) if (sessionId !== null) begin(sessionId)
    },
    take(sessionId) {
      const reading = readings.get(sessionId)
      if (reading === undefined || isOld(reading)) return undefined
      readings.delete(sessionId)
      reading.taken = true
      return reading.session
    },
  }
}
