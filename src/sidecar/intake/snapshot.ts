import type { Bus, Subscriber } from '../../core/bus.ts'
import type { Call } from '../../core/call.ts'
import { ITEMS_SINCE, lastItemOf } from '../../core/checkpoint.ts'
import { ServiceError, isParticular } from '../../core/errors.ts'
import { itemFactId, transcriptType, type Fact } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import type { Service } from '../../core/ports.ts'
import { isFinal, isSettled, type Action, type Item, type Session, type Turn } from '../../core/resource.ts'
import type { KnownItems, KnownSession, KnownTurn, Store } from '../../core/store.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import { messageOf } from '../../std/errors.ts'
import { writeJson, type JsonObject } from '../../std/json.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Intake } from './commit.ts'
import { baselineOf, callsOf, type Snapshot } from './diff.ts'
import type { Ownership } from './ownership.ts'
import { QUIET, type ItemsRead, type ReadEntry } from './schedule.ts'
import { startTime } from './start-time.ts'

/** The largest page that the service returns. */
export const PAGE = 100
/** The first page of turns: they are listed newest first, and most reads end on it. */
const TURNS_FIRST = 20
/** Pages of turns in one read: 10,000 turns since the last read. Older turns are read by id. */
const TURN_PAGES = 100
/** Concurrent prefetches, dropped ones included; with more to read, the list may be cheaper. */
const AT_ONCE = 2
/** A prefetch that is not taken within this time is dropped, milliseconds. */
const FRESH = 1000
/** A session that a prefetch finds deleted is read after this delay, milliseconds. */
const GONE_DELAY = 100
/** How often a session is read again because it changed while its turns were read. */
const REREAD = 3

const NONE: ReadonlySet<string> = new Set()

/** Sessions whose calls were accepted before their actions were stored. */
const ACCEPTED = 1000

/** The latest read that listed a call: `at`: when it was accepted, steady milliseconds. */
interface Sighting {
  updatedAt: number
  at: number
}

/** A read that has ended. */
interface EndedRead {
  sessionId: string
  /** null: it is gone. */
  session: Session | null
  /** The actions that were stored when it began. */
  stored: readonly Action[]
  /** Steady milliseconds: when the request for `session` was sent. */
  begunAt: number
}

/**
 * A prefetch finds a call, and its tool begins before the session is stored. Then the turn is cancelled. No later read
 * would find that the action is gone, and the tool would run on. So each read also looks for these calls.
 */
export interface CallTaker {
  /** Accepts the calls of a session that was just read. */
  take(session: Session): Promise<void>
  /**
   * Resolves when the results of tools for calls that were just accepted are being posted, or after a few milliseconds.
   * @returns whether each action of the session has one.
   */
  headStart(session: Session): Promise<boolean>
  /** Reports which of these calls are over. */
  look(read: EndedRead): void
}

export function createCallTaker(options: {
  /** Names of the tools that this sidecar runs. */
  tools: ReadonlySet<string>
  clock: Clock
  bus: Pick<Bus, 'report'>
  host: {
    takeOn(calls: readonly Call[], session: Session): Promise<void>
    headStart(callIds: readonly string[]): Promise<boolean>
  }
}): CallTaker {
  const { tools, clock, bus, host } = options
  const accepted = new BoundedMap<string, Map<string, Sighting>>(ACCEPTED)

  return {
    async take(session) {
      const calls = callsOf(session, { tools, now: clock.now() })
      if (calls.length === 0) return
      // A tool may run before the session of its call is stored: this report gives it the session.
      bus.report((to) => to.sessionRead?.(session))
      const found = accepted.get(session.id) ?? new Map<string, Sighting>()
      for (const { callId } of calls) {
        const updatedAt = Math.max(session.updatedAt, found.get(callId)?.updatedAt ?? -Infinity)
        found.set(callId, { updatedAt, at: clock.steady() })
      }
      accepted.set(session.id, found)
      await host.takeOn(calls, session)
    },
    headStart: ({ actions }) => host.headStart(actions.map(({ callId }) => callId)),
    look({ sessionId, session, stored, begunAt }) {
      const found = accepted.get(sessionId)
      if (found === undefined) return
      for (const { callId } of stored) found.delete(callId)
      const open = new Set(session?.actions.map(({ callId }) => callId))
      // A read that began before, or a page of the list from before, lacks the action because it is older.
      const over = [...found].flatMap(([callId, { updatedAt, at }]) =>
        !open.has(callId) && (session === null || (begunAt >= at && session.updatedAt > updatedAt))
          ? [callId]
          : [],
      )
      if (over.length > 0)
        bus.report((to) => to.actionsGone?.(over, session === null ? 'deleted' : 'resolved'))
      for (const callId of over) found.delete(callId)
      if (found.size === 0) accepted.delete(sessionId)
    },
  }
}

export interface SnapshotOptions {
  service: Service
  store: Store
  clock: Clock
  log: Log
  calls: CallTaker
  /** The announced turns of a session. */
  expectedTurns: (sessionId: string) => readonly string[]
}

/** One read of a session. */
export interface ReadRequest {
  entry: ReadEntry
  /** Steady milliseconds. */
  begunAt: number
  /** The stored state when the read began. */
  before: KnownSession | null
  /** Service clock, as `since` of DiffContext. */
  since: number | null
  /** Actions that came and went while an earlier read was under way, which was postponed. */
  passed: readonly Action[]
  streamConnected: boolean
}

/** Reads everything else that a comparison needs, given the session (`first`). null: the session is gone. */
export type Snapshots = (request: ReadRequest, first: Session) => Promise<Snapshot | null>

interface TurnsRequest extends Pick<ReadRequest, 'begunAt' | 'passed'> {
  baseline: number
  answered: boolean
}

export function createSnapshots(options: SnapshotOptions): Snapshots {
  const { service, store, clock, log } = options

  /**
   * Reads the turns of a session that was just read, and that may change meanwhile. Both are read again until each
   * action belongs to a listed turn that is not final, because an action cannot exist before its turn or after it.
   * `answered`: tools answered all its actions meanwhile, and that may end a turn. @returns null if it was deleted.
   */
  const readBoth = async (
    first: Session,
    knownTurns: readonly KnownTurn[],
    { baseline, begunAt, passed, answered }: TurnsRequest,
  ): Promise<
    (Pick<Snapshot, 'session' | 'turns' | 'passed' | 'endedSince'> & { begunAt: number }) | null
  > => {
    let session: Session | null = first
    let at = begunAt
    const seen = new Map(passed.map((action) => [action.callId, action]))
    for (let attempt = 0; ; attempt++) {
      for (const action of session.actions) seen.set(action.callId, action)
      const turns = await turnsOf(session.id, knownTurns, baseline)
      if (turns === null) return null
      const endedSince = answered && attempt === 0 ? await endedOf(session, turns) : NONE
      if (attempt === REREAD || agree(session, turns, endedSince)) {
        for (const { callId } of session.actions) seen.delete(callId)
        return { session, turns, passed: [...seen.values()], endedSince, begunAt: at }
      }
      at = clock.steady()
      session = await readSession(service, session.id)
      if (session === null) return null
    }
  }

  /**
   * A fast tool answers between the two reads, and its turn ends. If nothing else has happened, that end is left to the
   * next read. That read comes anyway, and a repetition of this one would need two more requests.
   */
  const endedOf = async ({ id, actions }: Session, turns: readonly Turn[]): Promise<ReadonlySet<string>> => {
    const open = new Set(actions.map(({ turnId }) => turnId))
    if (!turns.some((turn) => isFinal(turn) && open.has(turn.id))) return NONE
    const known = await store.resources.knownTurns(
      id,
      turns.map((turn) => turn.id),
    )
    const over = new Set(known.filter(({ final }) => final).map(({ turn }) => turn.id))
    const ended = turns.filter((turn) => isFinal(turn) && open.has(turn.id) && !over.has(turn.id))
    const others = turns.filter((turn) => !ended.includes(turn))
    const settled = new Set(known.filter((entry) => entry.settled).map(({ turn }) => turn.id))
    return others.every((turn) => settled.has(turn.id)) ? new Set(ended.map((turn) => turn.id)) : NONE
  }

  /** Reads the turns; null: the session is gone. A 404 of the turns alone is an error. */
  const turnsOf = async (sessionId: string, known: readonly KnownTurn[], baseline: number) => {
    try {
      return await readTurns(service, sessionId, known, baseline)
    } catch (error) {
      if (await isGone(service, error, sessionId)) return null
      throw error
    }
  }

  return async ({ before, entry, begunAt, ...request }, first) => {
    // A tool that answers within a millisecond would otherwise wait until the list of turns is requested and compared.
    let answered = false
    if (first.actions.length > 0) {
      await options.calls.take(first)
      answered = await options.calls.headStart(first)
    }
    const knownTurns = before?.turns ?? (await store.resources.knownTurns(first.id, []))
    const baseline = before?.baseline ?? baselineOf(first, request.since)
    const both = needsTurns(before, first, entry.scope !== 'session', request.streamConnected)
      ? await readBoth(first, knownTurns, {
          baseline,
          begunAt,
          passed: request.passed,
          // Frames that come soon cause the next read.
          answered: answered && request.streamConnected,
        })
      : { session: first, turns: null, passed: request.passed, endedSince: NONE, begunAt }
    if (both === null) return null
    const { session, turns, passed, endedSince } = both
    const stored = before?.actions ?? []
    options.calls.look({ sessionId: session.id, session, stored, begunAt: both.begunAt })
    const errorItem = await readStartFailure(service, session, {
      known: before,
      turns,
      failures: entry.failures,
    })
    // Reads the stored state again: the stream may have committed a turn.ended frame meanwhile.
    const ids = [
      ...(turns ?? []).map(({ id }) => id),
      ...passed.flatMap(({ turnId }) => turnId ?? []),
      ...options.expectedTurns(session.id),
    ]
    const known = await store.resources.known(session.id, ids)
    const placeholders = known === null ? await store.resources.knownTurns(session.id, ids) : []
    const settles = settlesAnew(
      (turns ?? []).filter(({ id }) => !endedSince.has(id)),
      known?.turns ?? placeholders,
    )
    const artifacts = settles ? await readArtifacts(service, session.id, entry.failures, log) : null
    if (artifacts === 'gone') return null
    return { session, turns, passed, endedSince, known, placeholders, errorItem, artifacts }
  }
}

/** Whether each action belongs to a turn that was read and is not final, or has just ended. */
function agree(session: Session, turns: readonly Turn[], endedSince: ReadonlySet<string>): boolean {
  const read = new Map(turns.map((turn) => [turn.id, turn]))
  return session.actions.every(({ turnId }) => {
    const turn = turnId === null ? undefined : read.get(turnId)
    return turnId === null || (turn !== undefined && (!isFinal(turn) || endedSince.has(turn.id)))
  })
}

/** Reads a session; null: it is gone. */
export async function readSession(
  service: Service,
  sessionId: string,
  signal?: AbortSignal,
): Promise<Session | null> {
  try {
    return await service.readSession(sessionId, signal)
  } catch (error) {
    if (error instanceof ServiceError && error.notFound) return null
    throw error
  }
}

/**
 * Reads the turns that may have changed: from the newest back to the first one known to be settled, or to a page of
 * turns that settled long before our start. A turn with pending artifacts may lie behind settled ones: turns that are
 * known to be unsettled and lie further back are read one by one.
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
    // The list need not be in the order of creation: one old turn shows nothing, a whole page of them does.
    const relevant = data.some(
      (turn) =>
        !settled.has(turn.id) &&
        !(isSettled(turn) && (turn.completedAt ?? turn.createdAt ?? 0) <= baseline - QUIET),
    )
    if (!hasMore || lastId === null || lastId === after) return turns
    // A page without a readable turn shows nothing.
    const enough =
      (data.length > 0 && !relevant) || (settled.size > 0 && data.some((turn) => settled.has(turn.id)))
    // If single turns cannot be read, the list is read back to the last of them.
    if (enough && (await readAlone(service, sessionId, missing, turns))) return turns
    after = lastId
  }
  await readAlone(service, sessionId, missing, turns)
  return turns
}

/** Reads the turns in `missing` one by one and moves them to `turns`. @returns whether all were read. */
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

/**
 * Reads one turn. null: the service cannot read single turns. `none`: a frame named the turn, or it existed once, and
 * the session does not have it.
 */
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
 * Lists the artifacts. If the token lacks the scope, the service lacks the route, or the list cannot be read for long,
 * the fact goes out without the list. `failures`: reads of the session that failed in a row.
 * @returns null when the list cannot be read.
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
    if (passes && !isParticular(error, failures)) throw error
    log.debug(
      { sessionId, code: error.code, error: messageOf(error) },
      'reconcile: the artifacts cannot be listed',
    )
    return null
  }
}

/** Whether a 404 means that the session is gone. */
async function isGone(service: Service, error: unknown, sessionId: string): Promise<boolean> {
  return error instanceof ServiceError && error.notFound && (await readSession(service, sessionId)) === null
}

/**
 * When a session could not start a run, no turn reports the error: the newest error item does. An item that is not
 * later than a known failure or the end of a turn belongs to that failure or turn. `failures`: as above.
 */
async function readStartFailure(
  service: Service,
  session: Session,
  { known, turns, failures }: { known: KnownSession | null; turns: readonly Turn[] | null; failures: number },
): Promise<JsonObject | null> {
  const before = known?.session.status === 'failed' ? known.session.updatedAt : null
  if (session.status !== 'failed' || (before !== null && session.updatedAt <= before)) return null
  if (turns?.some(isNewFailure(known)) === true) return null
  const read = (known?.turns ?? []).filter((entry) => entry.read).map(({ turn }) => turn)
  const ends = [...read, ...(turns ?? [])]
    .filter(isFinal)
    .map(({ completedAt, createdAt }) => completedAt ?? createdAt ?? 0)
  const since = Math.max(before ?? 0, ...ends)
  const { data } = await service.listItems(session.id, { limit: 10 }).catch((error: unknown) => {
    if (isParticular(error, failures)) return { data: [] }
    throw error
  })
  const newest = data.toSorted((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0))
  const errors = newest.filter((item) => item.type.includes('error') || item.event === 'agent.error')
  return errors.find(({ createdAt }) => createdAt === null || createdAt > since)?.raw ?? null
}

/** Whether the turns must be read too, or the session alone is enough. */
function needsTurns(
  known: KnownSession | null,
  session: Session,
  asked: boolean,
  streamConnected: boolean,
): boolean {
  if (asked || known === null || known.deleted) return true
  // An action of a turn that was never read: the start of the turn must come first.
  const read = new Set(known.turns.filter((turn) => turn.read).map(({ turn }) => turn.id))
  if (session.actions.some(({ turnId }) => turnId !== null && !read.has(turnId))) return true
  const unsettled = known.turns.some((turn) => !turn.settled)
  const { status, updatedAt } = known.session
  if (session.status === 'idle' || session.status === 'failed') {
    return unsettled || status !== session.status || !streamConnected
  }
  if (status === 'idle' || status === 'failed') return true
  // While the stream is connected, its frames cause the reads of turns.
  return !streamConnected && updatedAt !== session.updatedAt
}

/** Whether a turn is settled that was not known to be. */
function settlesAnew(turns: readonly Turn[], known: readonly KnownTurn[]): boolean {
  const over = new Set(known.filter(({ settled }) => settled).map(({ turn }) => turn.id))
  return turns.some((turn) => isSettled(turn) && !over.has(turn.id))
}

/** Matches turns that ended without success, and were not known to have ended. */
function isNewFailure(known: KnownSession | null): (turn: Turn) => boolean {
  const over = new Set(known?.turns.filter(({ final }) => final).map(({ turn }) => turn.id))
  return (turn) => isFinal(turn) && turn.status !== 'completed' && !over.has(turn.id)
}

/**
 * Reads that begin while their hint is still being committed: an urgent change then waits for the longer of the two,
 * not for their sum. A read answers only hints from before its begin, so a later hint drops it. The calls that it finds
 * are accepted at once: they do not wait for an earlier read of the session that is still under way.
 */
export interface Prefetch extends Required<Pick<Subscriber, 'hinted' | 'looked'>> {
  /**
   * The read of a session, under way or complete; each is returned once. It resolves to null when the session is gone.
   */
  take(sessionId: string): Promise<Session | null> | undefined
  /** The session is read in another way, or its read must begin later. */
  drop(sessionId: string): void
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
  store: Pick<Store, 'resources' | 'shards'>
  ownership: Pick<Ownership, 'filter' | 'isOurs'>
  calls: Pick<CallTaker, 'take'>
  hint: (hints: readonly Hint[]) => Promise<void>
  log: Log
}): Prefetch {
  const { clock, service, store, ownership, calls, hint, log } = options
  const readings = new Map<string, ReadingAhead>()
  /** Before the first look is complete, dirty sessions are not read, and so not prefetched. */
  let looked = false
  /** Requests. One whose reading was dropped still takes a slot and rate budget until it is answered. */
  let underWay = 0

  const isOld = ({ begunAt }: ReadingAhead): boolean => clock.steady() - begunAt > FRESH

  /** The hint has a delay, so it causes no further prefetch. */
  const noteGone = (sessionId: string): void => {
    hint([{ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: GONE_DELAY }]).catch(
      (error: unknown) =>
        log.error({ err: error }, 'reconcile: the end of a deleted session could not be stored'),
    )
  }

  /**
   * Accepts the calls of a prefetched session. A session that is new, older than the stored one, or perhaps foreign is
   * left to the reader.
   */
  const takeOn = async (session: Session): Promise<void> => {
    if (session.actions.length === 0) return
    const known = (await store.resources.glance([session.id])).get(session.id)
    if (known === undefined || known.deleted || session.updatedAt < known.updatedAt) return
    if (!ownership.filter.active || ownership.isOurs(session)) await calls.take(session)
  }

  const begin = (sessionId: string): void => {
    for (const [id, reading] of readings) if (isOld(reading)) readings.delete(id)
    if (Math.max(readings.size, underWay) >= AT_ONCE || !looked || !service.authorized()) return
    // Another replica owns the session, and reads it.
    if (!store.shards.owns(sessionId)) return
    const reading = { session: readSession(service, sessionId), begunAt: clock.steady(), taken: false }
    readings.set(sessionId, reading)
    underWay++
    reading.session
      .finally(() => underWay--)
      .then(async (session) => {
        const isDropped = !reading.taken && readings.get(sessionId) !== reading
        if (session !== null) return isDropped ? undefined : await takeOn(session)
        // No channel announces that a session is gone, and the hint of this read may be acknowledged already.
        if (!reading.taken) noteGone(sessionId)
      })
      // The reader of the session handles the failure.
      .catch(() => undefined)
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
    drop: (sessionId) => void readings.delete(sessionId),
  }
}

/** Pages of one session's items in one read; the next read follows at once and continues. */
const PAGES = 20

/** Reads the transcript without the stream: the items after the last one, in order. */
export interface Items {
  /**
   * `known`: the stored state. `since`: service clock; older items make no facts. `failures`: reads of the session that
   * failed in a row. After a few of them, items that cannot be read do not delay the state facts any longer.
   */
  read(
    sessionId: string,
    known: KnownSession | null,
    at: { since: number; failures: number },
  ): Promise<ItemsRead>
}

export function createItems(options: {
  service: Service
  store: Store
  intake: Intake
  clock: Clock
  log: Log
}): Items {
  const { service, store, intake, clock, log } = options
  const startedAt = startTime(options)

  /** The items of a session may be stored though a crash kept the session itself from being stored. */
  const knownOf = async (sessionId: string): Promise<KnownItems> => ({
    last: await store.settings.checkpoint(lastItemOf(sessionId)),
    since: await store.settings.checkpoint(ITEMS_SINCE),
  })

  /**
   * The time (service clock) since which items are the source of the transcript. Before, the stream was, also for
   * sessions whose items were read still earlier.
   */
  const begun = async (noted: string | null): Promise<number> => {
    if (noted !== '') return Number(noted ?? 0)
    const since = startedAt()
    await store.settings.setCheckpoint(ITEMS_SINCE, String(since))
    return since
  }

  const readOn = async (sessionId: string, known: KnownSession | null, since: number): Promise<ItemsRead> => {
    const name = lastItemOf(sessionId)
    const items = known?.items ?? (await knownOf(sessionId))
    let after = items.last
    // A session had more items before the first look than one read takes: the later reads skip the rest of them. Items
    // of the last hour make facts, because one of that time may have come since: a fact too many is better than a missing one.
    const boundary = Math.max(after === null ? since : since - QUIET, await begun(items.since))
    for (let page = 0; page < PAGES; page++) {
      const { data, hasMore, lastId } = await service.listItems(
        sessionId,
        after === null ? { limit: PAGE, order: 'asc' } : { limit: PAGE, order: 'asc', after },
      )
      // A page may have no readable item: it is skipped, so that the items after it are read.
      const newest = data.at(-1)?.id ?? (hasMore ? lastId : null)
      if (newest === null || newest === after) return 'all'
      const { stale } = await intake.commit({
        facts: data
          .filter((item) => (item.createdAt ?? Infinity) > boundary)
          .map((item) => factOf(item, clock.now())),
        checkpoint: { name, from: after, to: newest },
      })
      // Another read stored more items meanwhile, and this page may be so old that the ids of its facts are pruned:
      // they would be stored twice. So this read continues where the other one ended.
      if (stale.length > 0) after = await store.settings.checkpoint(name)
      else if (!hasMore) return 'all'
      else after = newest
    }
    return 'more'
  }
  return {
    async read(sessionId, known, { since, failures }) {
      try {
        return await readOn(sessionId, known, since)
      } catch (error) {
        if (!isParticular(error, failures)) throw error
        log.warn({ sessionId, error: messageOf(error) }, 'reconcile: the items of a session cannot be read')
        return 'none'
      }
    },
  }
}

function factOf(item: Item, at: number): Fact {
  return {
    id: itemFactId(item.sessionId, item.id),
    type: transcriptType(item.event ?? item.type),
    sessionId: item.sessionId,
    turnId: typeof item.raw.turn_id === 'string' ? item.raw.turn_id : null,
    at,
    family: 'transcript',
    seq: null,
    body: writeJson({ payload: item.raw, internal_type: null, seq: null }),
    seen: { poll: at },
    subject: null,
  }
}
