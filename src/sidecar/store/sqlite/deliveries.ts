import {
  deliveryId,
  parseDeliveryId,
  type Attempt,
  type DeliveryRecord,
  type DeliveryStatus,
} from '../../../core/delivery.ts'
import type { Clock } from '../../../std/ports.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { Lanes } from './lanes.ts'
import { createListing, mapListed, NOTHING, scan, where, POSITIONS_OF_SESSION } from './listing.ts'
import type { Sqlite } from './open.ts'

export const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead']

export interface DeliveryRow {
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

const DELIVERY = `SELECT d.fact_pos, d.handler, h.name AS handler_name, d.status, d.log, d.answer, l.due_at, f.id, f.type, f.session_id
  FROM deliveries d JOIN facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler
  LEFT JOIN lanes l ON l.id = d.lane`
/** Deliveries with a row. The table gives them in order; from the view, SQLite would sort everything that it finds. */
const ROW = DELIVERY.replace('FROM deliveries', 'FROM delivery_rows')

/**
 * The first delivery of the lane with the latest retry, for a handler. A handler that refuses everything may have a million
 * pending deliveries: only lanes that wait for a retry are searched.
 */
export const stuckOf = (tables: string): string => `(SELECT p.fact_pos, p.handler FROM ${tables}handlers n
    JOIN ${tables}lanes w ON w.handler = n.number JOIN ${tables}delivery_rows p ON p.lane = w.id
  WHERE n.name = ? AND w.pending > 0 AND w.due_at > 0 AND p.status = 0 AND p.log <> ''
    AND p.fact_pos = (SELECT min(q.fact_pos) FROM ${tables}delivery_rows q WHERE q.lane = w.id AND q.status = 0)
  ORDER BY w.due_at DESC, p.fact_pos LIMIT 1)`

/** Deliveries with their states, for people, the newest facts first. */
export function createDeliveries(
  db: Sqlite,
  lanes: Lanes,
  clock: Clock,
): Pick<StoreReader, 'deliveries' | 'delivery' | 'stuck'> {
  const byKey = db.prepare<[number, number], DeliveryRow>(
    `${DELIVERY} WHERE d.fact_pos = ? AND d.handler = ?`,
  )
  const stuck = db.prepare<[string], DeliveryRow>(`${ROW} WHERE (d.fact_pos, d.handler) = ${stuckOf('')}`)
  const posOf = db.prepare<[string], number>('SELECT pos FROM facts WHERE id = ?').pluck()
  const ends = db.prepare<[], { low: number | null; high: number | null }>(
    'SELECT (SELECT min(pos) FROM facts) AS low, (SELECT max(pos) FROM facts) AS high',
  )

  const delivery = (id: string): DeliveryRow | undefined => {
    const key = parseDeliveryId(id)
    return key === null ? undefined : byKey.get(key.pos, key.handlerNumber)
  }

  return {
    async deliveries({ after, limit, status, handler, factId, sessionId, since }) {
      const cursor = after === undefined ? undefined : delivery(after)
      const number = lanes.handlers().find(({ name }) => name === handler)?.number
      const pos = factId === undefined ? undefined : posOf.get(factId)
      if (after !== undefined && cursor === undefined) return NOTHING
      if (handler !== undefined && number === undefined) return NOTHING
      if (factId !== undefined && pos === undefined) return NOTHING
      const { low, high } =
        pos === undefined ? (ends.get() ?? { low: null, high: null }) : { low: pos, high: pos }
      if (low === null || high === null) return NOTHING
      const part = { low, high: Math.min(high, cursor?.fact_pos ?? high), order: 'desc' } as const
      const listing = createListing<DeliveryRow>(
        limit,
        ({ log, answer }) => log.length + (answer?.length ?? 0),
      )
      const find = (select: string, first: number, last: number) => {
        const [text, values] = where([
          ['d.fact_pos BETWEEN ? AND ?', first, last],
          ['(d.fact_pos, d.handler) < (?, ?)', cursor?.fact_pos, cursor?.handler],
          ['d.status = ?', status === undefined ? undefined : STATUSES.indexOf(status)],
          ['d.handler = ?', number],
          [`d.fact_pos IN (${POSITIONS_OF_SESSION})`, sessionId, first, last, sessionId, first, last],
          ['f.at >= ?', since],
        ])
        return db
          .prepare<unknown[], DeliveryRow>(`${select} ${text} ORDER BY d.fact_pos DESC, d.handler DESC`)
          .iterate(...values)
      }
      const listed = await scan(part, listing, clock, function* look(first, last) {
        const { written } = lanes.rows
        if (last > written) yield* find(DELIVERY, Math.max(first, written + 1), last)
        if (first <= written) yield* find(ROW, first, Math.min(last, written))
      })
      return mapListed(listed, (row) => [deliveryOf(row)])
    },
    async delivery(id) {
      const row = delivery(id)
      return row === undefined ? null : deliveryOf(row)
    },
    async stuck(handler) {
      const row = stuck.get(handler)
      return row === undefined ? null : deliveryOf(row)
    },
  }
}

export function deliveryOf(row: DeliveryRow): DeliveryRecord {
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
