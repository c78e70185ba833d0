import { isParticular, ServiceError } from '../../core/errors.ts'
import { messageOf } from '../../std/errors.ts'
import type { JsonObject } from '../../std/json.ts'
import type { Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { isFinal, isSettled, type Session, type Turn } from '../../core/resource.ts'
import type { HintedSession, KnownSession, KnownTurn } from '../../core/store.ts'

/** The service's largest page. */
export const PAGE = 100
/** Turns are read newest first and most readings end on the first page. */
const TURNS_FIRST = 20
/** Pages of turns in one reading: 10,000 turns since the last one. What is older is found by its own id. */
const TURN_PAGES = 100
/** What came to rest so long ago has no artifacts under way: it need not be looked at. Milliseconds. */
export const QUIET = 3_600_000

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
export async function readTurns(
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

/** Readings of a session that may fail for want of what only goes with its facts. */
export const PATIENCE = 3

/**
 * A token without the scope, or a service without the route, costs the list and not the fact; so does a list that cannot be
 * read for long. `failures`: readings of the session that failed in a row.
 * @returns null when the list cannot be had.
 */
export async function readArtifacts(
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
export async function isGone(service: Service, error: unknown, sessionId: string): Promise<boolean> {
  return error instanceof ServiceError && error.notFound && (await readSession(service, sessionId)) === null
}

/**
 * The newest item that tells of an error, where a run could not start: there is no turn to say so, and the session may have
 * failed before. What is no later than a turn's end or a failure that we know of is about that. `failures`: as above.
 */
export async function readStartFailure(
  service: Service,
  session: Session,
  known: KnownSession | null,
  turns: readonly Turn[] | null,
  failures: number,
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
export function needsTurns(
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

/**
 * A turn is over and its artifacts are on the way. One that names none (null) for long has none: it is not waited for any
 * more, and settles if it names some after all.
 */
export function isCollecting({ turn, final, settled, finalReadAt }: KnownTurn, steady: number): boolean {
  if (!final || settled) return false
  return turn.artifacts !== null || steady - (finalReadAt ?? steady) < QUIET
}

/** Whether a turn settled that was not known to be. */
export function settlesAnew(turns: readonly Turn[], known: readonly KnownTurn[]): boolean {
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
