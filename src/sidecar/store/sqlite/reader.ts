import type { Clock } from '../../../std/ports.ts'
import { DELETED, type SessionRecord, type StoreReader } from '../../../core/store-reader.ts'
import { parseAction, parseTurn } from '../../../core/wire.ts'
import { createCounts } from './counts.ts'
import { createDeliveries } from './deliveries.ts'
import { createFacts } from './facts.ts'
import { createFrames } from './frames.ts'
import type { Lanes } from './lanes.ts'
import { list, mapListed, NOTHING, where, type Condition } from './listing.ts'
import type { Sqlite } from './open.ts'
import { CALL, callOf, type CallRow } from './calls.ts'
import { sessionOf, type SessionRow } from './sessions.ts'
import { objectOf } from '../../../std/depth.ts'
import { createWaiting } from './waiting.ts'

/** Titles are in no index. Reading one takes about 2 µs, and no other work runs meanwhile: older titles are left out. */
export const SEARCHED = 10_000
const SEARCHED_FROM = `coalesce((SELECT first_seen FROM sessions ORDER BY first_seen DESC LIMIT 1 OFFSET ${SEARCHED}), 0)`
/** Turns and calls of one session that its page shows. */
export const SHOWN_PER_SESSION = 200

interface Raw {
  raw: string
}

export const sizeOfRaw = ({ raw }: Raw): number => raw.length
export const sizeOfCall = (call: CallRow): number => call.action.length + (call.resultText?.length ?? 0)

/**
 * Reads for people and metrics. If the row that a page should continue after is not known, the page is empty, as with
 * the service itself.
 */
export function createReader(db: Sqlite, lanes: Lanes, clock: Clock): StoreReader {
  const query = <T>(conditions: readonly Condition[], sql: (conditions: string) => string): Iterable<T> => {
    const [text, values] = where(conditions)
    return db.prepare<unknown[], T>(sql(text)).iterate(...values)
  }
  const sessionById = db.prepare<[string], SessionRow>('SELECT * FROM sessions WHERE id = ?')
  const callById = db.prepare<[string], CallRow>(`SELECT ${CALL} FROM calls WHERE call_id = ?`)

  return {
    ...createWaiting(db),
    ...createFacts(db, clock),
    ...createDeliveries(db, lanes, clock),
    ...createFrames(db),
    async sessions({ after, limit, status, text }) {
      const last = after === undefined ? undefined : sessionById.get(after)
      if (after !== undefined && last === undefined) return NOTHING
      const exact = text === undefined ? undefined : sessionById.get(text)
      const rows = query<SessionRow>(
        [
          ['(first_seen, id) < (?, ?)', last?.first_seen, last?.id],
          // Sessions that left the scope are kept for their pending deliveries.
          ["NOT EXISTS (SELECT 1 FROM session_owners WHERE session_id = id AND owner = 'foreign')"],
          ['status = ? AND deleted_at IS NULL', status === DELETED ? undefined : status],
          ['deleted_at IS NOT NULL', ...(status === DELETED ? [] : [undefined])],
          ['id = ?', exact?.id],
          ["instr(lower(raw ->> '$.title'), lower(?)) > 0", exact === undefined ? text : undefined],
          [
            `first_seen >= ${SEARCHED_FROM}`,
            ...(exact === undefined && text !== undefined ? [] : [undefined]),
          ],
        ],
        (conditions) =>
          `SELECT * FROM sessions ${conditions} ORDER BY first_seen DESC, id DESC LIMIT ${limit + 1}`,
      )
      return mapListed(list(rows, limit, sizeOfRaw), (row) => [recordOf(row)])
    },
    async session(id) {
      const row = sessionById.get(id)
      if (row === undefined) return null
      const turns = db
        .prepare<[string, number], { raw: string }>(
          'SELECT raw FROM turns WHERE session_id = ? AND raw IS NOT NULL ORDER BY created_at DESC LIMIT ?',
        )
        .iterate(id, SHOWN_PER_SESSION)
      const actions = db
        .prepare<[string], { raw: string }>(
          'SELECT raw FROM actions WHERE session_id = ? AND resolved_at IS NULL',
        )
        .all(id)
      const calls = db
        .prepare<[string, number], CallRow>(
          `SELECT ${CALL} FROM calls WHERE session_id = ? ORDER BY received_at DESC LIMIT ?`,
        )
        .iterate(id, SHOWN_PER_SESSION)
      return pageOf(row, { turns, actions, calls })
    },
    async calls({ after, limit, state, sessionId }) {
      const last = after === undefined ? undefined : callById.get(after)
      if (after !== undefined && last === undefined) return NOTHING
      const rows = query<CallRow>(
        [
          ['(received_at, call_id) < (?, ?)', last?.receivedAt, last?.callId],
          ['state = ?', state],
          ['session_id = ?', sessionId],
        ],
        (conditions) =>
          `SELECT ${CALL} FROM calls ${conditions} ORDER BY received_at DESC, call_id DESC LIMIT ${limit + 1}`,
      )
      return mapListed(list(rows, limit, sizeOfCall), (row) => [callOf(row)])
    },
    async handlers() {
      return lanes.handlers()
    },
    counts: createCounts(db, clock),
  }
}

export function recordOf(row: SessionRow): SessionRecord {
  return {
    session: sessionOf(row),
    deletedAt: row.deleted_at,
    firstSeenAt: row.first_seen,
    readAt: row.read_at,
    atRest: row.at_rest === 1,
  }
}

/** What the page of a session shows. */
export function pageOf(
  row: SessionRow,
  { turns, actions, calls }: { turns: Iterable<Raw>; actions: readonly Raw[]; calls: Iterable<CallRow> },
): Awaited<ReturnType<StoreReader['session']>> {
  return {
    ...recordOf(row),
    turns: list(turns, SHOWN_PER_SESSION, sizeOfRaw).rows.flatMap(
      ({ raw }) => parseTurn(objectOf(raw)) ?? [],
    ),
    actions: actions.flatMap(({ raw }) => parseAction(objectOf(raw)) ?? []),
    calls: list(calls, SHOWN_PER_SESSION, sizeOfCall).rows.map(callOf),
  }
}
