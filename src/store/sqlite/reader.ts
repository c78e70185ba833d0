import {
  deliveryId,
  parseDeliveryId,
  type Attempt,
  type DeliveryRecord,
  type DeliveryStatus,
} from '../../core/delivery.ts'
import type { Clock } from '../../core/ports.ts'
import type { StoreReader } from '../../core/store.ts'
import { parseAction, parseTurn } from '../../core/wire.ts'
import { createCounts } from './counts.ts'
import { createFacts } from './facts.ts'
import { createFrames } from './frames.ts'
import type { Lanes } from './lanes.ts'
import type { Sqlite } from './open.ts'
import { callOf, objectOf, type CallRow, type SessionRow } from './rows.ts'
import { recordOf } from './sessions.ts'
import { createWaiting } from './waiting.ts'

const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead']
/** Titles are in no index, and reading them takes about 2 µs each, while nothing else is done: older ones are left out. */
const SEARCHED = 10_000
const SEARCHED_FROM = `coalesce((SELECT first_seen FROM sessions ORDER BY first_seen DESC LIMIT 1 OFFSET ${SEARCHED}), 0)`
/** Turns and calls of one session that its page shows. */
const SHOWN_PER_SESSION = 200

interface DeliveryRow {
  fact_pos: number
  handler: number
  handler_name: string
  status: number
  log: string
  answer: string | null
  due_at: number | null
  id: string
  type: string
  session_id: string | null
}

type Condition = readonly [string, ...unknown[]]

const DELIVERY = `SELECT d.fact_pos, d.handler, h.name AS handler_name, d.status, d.log, d.answer, l.due_at, f.id, f.type, f.session_id
  FROM deliveries d JOIN facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler
  LEFT JOIN lanes l ON l.id = d.lane`

/** Reads for people and metrics. A cursor that cannot be placed gives an empty page, as with the service itself. */
export function createReader(db: Sqlite, lanes: Lanes, clock: Clock): StoreReader {
  /** Conditions with a value that is undefined are left out. */
  const query = <T>(conditions: readonly Condition[], sql: (where: string) => string): T[] => {
    const used = conditions.filter(([, ...values]) => !values.includes(undefined))
    const where = used.length === 0 ? '' : `WHERE ${used.map(([text]) => text).join(' AND ')}`
    return db.prepare<unknown[], T>(sql(where)).all(...used.flatMap(([, ...values]) => values))
  }
  const counts = createCounts(db, clock)
  const sessionById = db.prepare<[string], SessionRow>('SELECT * FROM sessions WHERE id = ?')
  const callById = db.prepare<[string], CallRow>('SELECT * FROM calls WHERE call_id = ?')
  const deliveryByKey = db.prepare<[number, number], DeliveryRow>(
    `${DELIVERY} WHERE d.fact_pos = ? AND d.handler = ?`,
  )

  return {
    ...createWaiting(db),
    ...createFacts(db, clock),
    ...createFrames(db),
    async sessions({ after, limit, status, text }) {
      const last = after === undefined ? undefined : sessionById.get(after)
      if (after !== undefined && last === undefined) return []
      const exact = text === undefined ? undefined : sessionById.get(text)
      return query<SessionRow>(
        [
          ['(first_seen, id) < (?, ?)', last?.first_seen, last?.id],
          ['status = ?', status],
          ['id = ?', exact?.id],
          ["instr(lower(raw ->> '$.title'), lower(?)) > 0", exact === undefined ? text : undefined],
          [
            `first_seen >= ${SEARCHED_FROM}`,
            ...(exact === undefined && text !== undefined ? [] : [undefined]),
          ],
        ],
        (where) => `SELECT * FROM sessions ${where} ORDER BY first_seen DESC, id DESC LIMIT ${limit}`,
      ).map(recordOf)
    },
    async session(id) {
      const row = sessionById.get(id)
      if (row === undefined) return null
      const turns = db
        .prepare<[string, number], { raw: string }>(
          'SELECT raw FROM turns WHERE session_id = ? AND raw IS NOT NULL ORDER BY created_at DESC LIMIT ?',
        )
        .all(id, SHOWN_PER_SESSION)
      const actions = db
        .prepare<[string], { raw: string }>(
          'SELECT raw FROM actions WHERE session_id = ? AND resolved_at IS NULL',
        )
        .all(id)
      const calls = db
        .prepare<[string, number], CallRow>(
          'SELECT * FROM calls WHERE session_id = ? ORDER BY received_at DESC LIMIT ?',
        )
        .all(id, SHOWN_PER_SESSION)
      return {
        ...recordOf(row),
        turns: turns.flatMap(({ raw }) => parseTurn(objectOf(raw)) ?? []),
        actions: actions.flatMap(({ raw }) => parseAction(objectOf(raw)) ?? []),
        calls: calls.map(callOf),
      }
    },
    async calls({ after, limit, state, sessionId }) {
      const last = after === undefined ? undefined : callById.get(after)
      if (after !== undefined && last === undefined) return []
      return query<CallRow>(
        [
          ['(received_at, call_id) < (?, ?)', last?.received_at, last?.call_id],
          ['state = ?', state],
          ['session_id = ?', sessionId],
        ],
        (where) => `SELECT * FROM calls ${where} ORDER BY received_at DESC, call_id DESC LIMIT ${limit}`,
      ).map(callOf)
    },
    async deliveries({ after, limit, status, handler, factId, sessionId }) {
      const cursor = after === undefined ? null : parseDeliveryId(after)
      if (
        after !== undefined &&
        (cursor === null || deliveryByKey.get(cursor.pos, cursor.handlerNumber) === undefined)
      ) {
        return []
      }
      const number =
        handler === undefined ? undefined : lanes.handlers().find(({ name }) => name === handler)?.number
      if (handler !== undefined && number === undefined) return []
      const rows = query<DeliveryRow>(
        [
          ['(d.fact_pos, d.handler) < (?, ?)', cursor?.pos, cursor?.handlerNumber],
          ['d.status = ?', status === undefined ? undefined : STATUSES.indexOf(status)],
          ['d.handler = ?', number],
          ['f.id = ?', factId],
          ['f.session_id = ?', sessionId],
        ],
        (where) => `${DELIVERY} ${where} ORDER BY d.fact_pos DESC, d.handler DESC LIMIT ${limit}`,
      )
      return rows.map(deliveryOf)
    },
    async delivery(id) {
      const key = parseDeliveryId(id)
      const row = key === null ? undefined : deliveryByKey.get(key.pos, key.handlerNumber)
      return row === undefined ? null : deliveryOf(row)
    },
    async handlers() {
      return lanes.handlers()
    },
    async counts() {
      return counts()
    },
  }
}

function deliveryOf(row: DeliveryRow): DeliveryRecord {
  const status = STATUSES[row.status] ?? 'pending'
  return {
    id: deliveryId(row.fact_pos, row.handler),
    factId: row.id,
    pos: row.fact_pos,
    type: row.type,
    handler: row.handler_name,
    sessionId: row.session_id,
    status,
    attempts: JSON.parse(`[${row.log}]`) as Attempt[],
    lastAnswer: row.answer,
    nextAt: status === 'pending' ? (row.due_at ?? 0) : null,
  }
}
