import { parseDeliveryId } from '../../../core/delivery.ts'
import type { ReplayStart, RetrySelection } from '../../../core/store.ts'
import { seqOf } from '../sqlite/log.ts'
import type { Queries } from './database.ts'
import type { Lanes } from './lanes.ts'
import { placeOf } from '../membership.ts'

/**
 * Rows that one transaction reads. The other replicas wait for it, so it has few statements: a redelivery of any size does
 * not delay their writes for long.
 */
const STEP = 500

/** A fact that is delivered again, and the key of its lane. */
interface Again {
  pos: number
  key: string
  session_id: string | null
}

interface FactRow extends Again {
  type: string
  at: number
  seq: string | null
  status: number | null
}

/** The lane of a delivery; if it was removed, or there was none, that of the fact `f` for a handler that is ordered or not. */
function keyOf(ordered: string): string {
  return `coalesce(l.key, CASE WHEN ${ordered} THEN coalesce(f.session_id, '') ELSE f.id END) AS key`
}

type Write = <T>(run: (queries: Queries) => Promise<T>) => Promise<T>

/** Makes deliveries pending again, or for the first time, each in its lane. */
export class Redelivery {
  readonly #lanes: Lanes
  readonly #write: Write

  constructor(lanes: Lanes, write: Write) {
    this.#lanes = lanes
    this.#write = write
  }

  async retry({ id, handler, since = -Infinity, dryRun = false }: RetrySelection): Promise<number> {
    if (id !== undefined) return await this.#write((queries) => this.#retryOne(queries, id, dryRun))
    let count = 0
    for (const { name, number } of await this.#write((queries) => this.#lanes.handlers(queries)))
      if (handler === undefined || handler === name) count += await this.#retryDead(number, since, dryRun)
    return count
  }

  async replay(number: number, wants: (type: string) => boolean, from: ReplayStart): Promise<number> {
    const least = 'seq' in from ? seqOf(from.seq) : null
    let pos = 'pos' in from ? from.pos - 1 : 0
    let started = least === null
    let count = 0
    for (;;) {
      const step = await this.#write(async (queries) => {
        const page = await queries.rows<FactRow>(
          `SELECT f.pos, f.type, f.at, f.seq, f.session_id, ${keyOf('$3')},
             CASE WHEN d.status IS NULL AND $1 <= 30 AND f.wanted >> $1 & 1 = 1 THEN 0 ELSE d.status END AS status
           FROM sidecar.facts f LEFT JOIN sidecar.delivery_rows d ON d.fact_pos = f.pos AND d.handler = $1
             LEFT JOIN sidecar.lanes l ON l.id = d.lane
           WHERE f.pos > $2::bigint ORDER BY f.pos LIMIT ${STEP}`,
          [number, pos, this.#lanes.configured.isOrdered(number)],
        )
        // State facts have no seq. The replay begins at the first frame in the log with this seq or a higher one, and
        // includes all state facts behind it.
        const first = started ? 0 : page.findIndex(({ seq }) => (seqOf(seq) ?? -1n) >= (least ?? 0n))
        const wanted = page.filter(
          (fact, index) =>
            first !== -1 &&
            index >= first &&
            fact.status !== 0 &&
            wants(fact.type) &&
            !('at' in from && fact.at < from.at),
        )
        await this.#deliverAgain(queries, number, wanted)
        return { page, started: first !== -1, count: wanted.length }
      })
      pos = step.page.at(-1)?.pos ?? pos
      started = step.started
      count += step.count
      if (step.page.length < STEP) return count
    }
  }

  async #retryOne(queries: Queries, id: string, dryRun: boolean): Promise<number> {
    const key = parseDeliveryId(id)
    if (key === null) return 0
    const [row] = await queries.rows<Again & { status: number; lane: number }>(
      `SELECT f.pos, f.session_id, ${keyOf('$3')}, d.status, d.lane FROM sidecar.deliveries d
         JOIN sidecar.facts f ON f.pos = d.fact_pos LEFT JOIN sidecar.lanes l ON l.id = d.lane
       WHERE d.fact_pos = $1 AND d.handler = $2`,
      [key.pos, key.handlerNumber, this.#lanes.configured.isOrdered(key.handlerNumber)],
    )
    if (row === undefined) return 0
    // A pending delivery that waits for its retry becomes due now.
    if (row.status === 0) {
      if (dryRun) return 0
      return await queries.change('UPDATE sidecar.lanes SET due_at = 0 WHERE id = $1 AND due_at > 0', [
        row.lane,
      ])
    }
    if (!dryRun) await this.#deliverAgain(queries, key.handlerNumber, [row])
    return 1
  }

  async #retryDead(handler: number, since: number, dryRun: boolean): Promise<number> {
    let count = 0
    let reached = 0
    for (;;) {
      const { page, chosen } = await this.#write(async (queries) => {
        const rows = await queries.rows<Again & { at: number }>(
          `SELECT f.pos, f.session_id, ${keyOf('$3')}, f.at FROM sidecar.delivery_rows d
             JOIN sidecar.facts f ON f.pos = d.fact_pos LEFT JOIN sidecar.lanes l ON l.id = d.lane
           WHERE d.handler = $1 AND d.status = 2 AND d.fact_pos > $2::bigint ORDER BY d.fact_pos LIMIT ${STEP}`,
          [handler, reached, this.#lanes.configured.isOrdered(handler)],
        )
        const wanted = rows.filter(({ at }) => at >= since)
        if (!dryRun) await this.#deliverAgain(queries, handler, wanted)
        return { page: rows, chosen: wanted.length }
      })
      count += chosen
      reached = page.at(-1)?.pos ?? reached
      if (page.length < STEP) return count
    }
  }

  /** Makes deliveries pending, each in its lane, which may be new. `rows`: in the order of the log. */
  async #deliverAgain(queries: Queries, handler: number, rows: readonly Again[]): Promise<void> {
    if (rows.length === 0) return
    const lanes = new Map<string, { shard: number; pending: number; first: number }>()
    for (const { pos, key, session_id: sessionId } of rows) {
      const lane = lanes.get(key)
      if (lane === undefined) lanes.set(key, { shard: placeOf(sessionId ?? key), pending: 1, first: pos })
      else lane.pending++
    }
    // In the order in which commits lock lanes.
    const sorted = [...lanes].toSorted(([a], [b]) => (a < b ? -1 : 1))
    await queries.change(
      `WITH grown AS (INSERT INTO sidecar.lanes AS l (handler, key, shard, pending, fresh, due_at)
         SELECT $1::int, given.*, 0 FROM unnest($2::text[], $3::smallint[], $4::bigint[], $5::bigint[]) AS given
         ON CONFLICT (handler, key) DO UPDATE SET pending = l.pending + excluded.pending, due_at = 0 RETURNING id, key)
       INSERT INTO sidecar.delivery_rows AS d (fact_pos, handler, lane, status, attempts, log)
         SELECT pos, $1, grown.id, 0, 0, '' FROM unnest($6::bigint[], $7::text[]) AS of (pos, key) JOIN grown USING (key)
         ON CONFLICT (fact_pos, handler) DO UPDATE SET status = 0, attempts = 0, cut = 0, lane = excluded.lane`,
      [
        handler,
        sorted.map(([key]) => key),
        sorted.map(([, { shard }]) => shard),
        sorted.map(([, { pending }]) => pending),
        sorted.map(([, { first }]) => first),
        rows.map(({ pos }) => pos),
        rows.map(({ key }) => key),
      ],
    )
  }
}
