import { parseDeliveryId } from '../../../core/delivery.ts'
import type { ReplayStart, RetrySelection } from '../../../core/store.ts'
import { seqOf } from '../sqlite/log.ts'
import type { Queries, Transaction } from './database.ts'
import type { Lanes } from './lanes.ts'
import { placeOf } from '../membership.ts'

/** Rows that one transaction reads: a redelivery of any size does not delay other writes for long. */
const STEP = 500

interface Row {
  fact_pos: number
  handler: number
  lane: number
}

interface FactRow {
  pos: number
  id: string
  type: string
  at: number
  seq: string | null
  session_id: string | null
  status: number | null
  lane: number | null
}

type Write = <T>(run: (transaction: Transaction) => Promise<T>) => Promise<T>

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
          `SELECT f.pos, f.id, f.type, f.at, f.seq, f.session_id, d.lane,
             CASE WHEN d.status IS NULL AND $1 <= 30 AND f.wanted >> $1 & 1 = 1 THEN 0 ELSE d.status END AS status
           FROM sidecar.facts f LEFT JOIN sidecar.delivery_rows d ON d.fact_pos = f.pos AND d.handler = $1
           WHERE f.pos > $2::bigint ORDER BY f.pos LIMIT ${STEP}`,
          [number, pos],
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
        for (const fact of wanted) await this.#handOver(queries, fact, number)
        return { page, started: first !== -1, count: wanted.length }
      })
      pos = step.page.at(-1)?.pos ?? pos
      started = step.started
      count += step.count
      if (step.page.length < STEP) return count
    }
  }

  async #handOver(queries: Queries, { pos, lane }: FactRow, handler: number): Promise<void> {
    if (lane !== null) return await this.#revive(queries, { fact_pos: pos, handler, lane })
    const id = await this.#extend(queries, handler, pos)
    await queries.change(
      `INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log) VALUES ($1, $2, $3, 0, 0, '')`,
      [pos, handler, id],
    )
  }

  async #retryOne(queries: Queries, id: string, dryRun: boolean): Promise<number> {
    const key = parseDeliveryId(id)
    if (key === null) return 0
    const [row] = await queries.rows<Row & { status: number }>(
      'SELECT fact_pos, handler, lane, status FROM sidecar.deliveries WHERE fact_pos = $1 AND handler = $2',
      [key.pos, key.handlerNumber],
    )
    if (row === undefined) return 0
    // A pending delivery that waits for its retry becomes due now.
    if (row.status === 0) {
      if (dryRun) return 0
      return await queries.change('UPDATE sidecar.lanes SET due_at = 0 WHERE id = $1 AND due_at > 0', [
        row.lane,
      ])
    }
    if (!dryRun) await this.#revive(queries, row)
    return 1
  }

  async #retryDead(handler: number, since: number, dryRun: boolean): Promise<number> {
    let count = 0
    let reached = 0
    for (;;) {
      const { page, chosen } = await this.#write(async (queries) => {
        const rows = await queries.rows<Row & { at: number }>(
          `SELECT d.fact_pos, d.handler, d.lane, f.at FROM sidecar.delivery_rows d JOIN sidecar.facts f ON f.pos = d.fact_pos
           WHERE d.handler = $1 AND d.status = 2 AND d.fact_pos > $2::bigint ORDER BY d.fact_pos LIMIT ${STEP}`,
          [handler, reached],
        )
        const wanted = rows.filter(({ at }) => at >= since)
        if (!dryRun) for (const row of wanted) await this.#revive(queries, row)
        return { page: rows, chosen: wanted.length }
      })
      count += chosen
      reached = page.at(-1)?.fact_pos ?? reached
      if (page.length < STEP) return count
    }
  }

  async #revive(queries: Queries, { fact_pos: pos, handler, lane }: Row): Promise<void> {
    const grown = await queries.change(
      'UPDATE sidecar.lanes SET pending = pending + 1, due_at = 0 WHERE id = $1',
      [lane],
    )
    // An empty lane may have been removed.
    const id = grown === 1 ? lane : await this.#extend(queries, handler, pos)
    await queries.change(
      'UPDATE sidecar.delivery_rows SET status = 0, attempts = 0, cut = 0, lane = $1 WHERE fact_pos = $2 AND handler = $3',
      [id, pos, handler],
    )
  }

  /** Adds one pending delivery to its lane, which may be new. @returns the number of the lane. */
  async #extend(queries: Queries, handler: number, pos: number): Promise<number> {
    const [fact] = await queries.rows<{ id: string; session_id: string | null }>(
      'SELECT id, session_id FROM sidecar.facts WHERE pos = $1',
      [pos],
    )
    if (fact === undefined) throw new Error('the fact of a delivery is missing')
    const key = this.#lanes.configured.isOrdered(handler) ? (fact.session_id ?? '') : fact.id
    const [row] = await queries.rows<{ id: number }>(
      `INSERT INTO sidecar.lanes AS l (handler, key, shard, pending, due_at, fresh) VALUES ($1, $2, $3, 1, 0, $4)
       ON CONFLICT (handler, key) DO UPDATE SET pending = l.pending + 1, due_at = 0 RETURNING id`,
      [handler, key, placeOf(fact.session_id ?? key), pos],
    )
    if (row === undefined) throw new Error('the lane was not written')
    return row.id
  }
}
