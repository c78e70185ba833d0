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
 * A handler that refuses everything may have a million lanes with pending deliveries. Those that wait for a retry have the
 * latest times, so a few lanes are enough. `name`: the parameter with the name of the handler.
 */
export const stuckOf = (prefix: string, name: string): string => `WITH late AS MATERIALIZED (
    SELECT w.id, w.due_at FROM ${prefix}handlers n JOIN ${prefix}lanes w ON w.handler = n.number
    WHERE n.name = ${name} AND w.pending > 0 ORDER BY w.due_at DESC LIMIT 100)
  SELECT d.fact_pos, d.handler, ${name} AS handler_name, d.status, d.log, d.answer, late.due_at, f.id, f.type, f.session_id
  FROM late JOIN ${prefix}delivery_rows d ON d.lane = late.id AND d.status = 0
    AND d.fact_pos = (SELECT min(q.fact_pos) FROM ${prefix}delivery_rows q WHERE q.lane = late.id AND q.status = 0)
  JOIN ${prefix}facts f ON f.pos = d.fact_pos
  WHERE d.log <> '' ORDER BY late.due_at DESC, d.fact_pos`

/** Deliveries with their states, for people, the newest facts first. */
export function createDeliveries(
  db: Sqlite,
  lanes: Lanes,
  clock: Clock,
): Pick<StoreReader, 'deliveries' | 'delivery' | 'stuck'> {
  const byKey = db.prepare<[number, number], DeliveryRow>(
    `${DELIVERY} WHERE d.fact_pos = ? AND d.handler = ?`,
  )
  const stuck = db.prepare<[{ handler: string }], DeliveryRow>(stuckOf('', '@handler'))
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
      return stuck.all({ handler }).map(deliveryOf)
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
