import type { ReplayStart, RetrySelection } from '../../../core/store.ts'
import { parseDeliveryId } from '../../../core/delivery.ts'
import type { Lanes } from './lanes.ts'
import { seqOf } from './log.ts'
import type { Sqlite } from './open.ts'

/** Rows that one transaction reads: a redelivery of any size does not delay other writes for long. */
const STEP = 500

interface RedeliverableRow {
  fact_pos: number
  handler: number
  lane: number
}

/** The position of a replay. `started`: the seq that it starts from has been found. */
interface Place {
  pos: number
  started: boolean
}

export interface Redelivery {
  retry(selection: RetrySelection): Promise<number>
  /** `number`: the handler's. */
  replay(number: number, wants: (type: string) => boolean, from: ReplayStart): Promise<number>
}

/**
 * Makes deliveries pending again, or for the first time, each in its lane. `write` runs a transaction and may run it
 * twice, so a step changes rows only.
 */
export function createRedelivery(
  db: Sqlite,
  lanes: Lanes,
  write: <T>(run: () => T) => Promise<T>,
): Redelivery {
  const one = db.prepare<[number, number], RedeliverableRow & { status: number }>(
    'SELECT fact_pos, handler, lane, status FROM delivery_rows WHERE fact_pos = ? AND handler = ?',
  )
  const dead = db.prepare<[number, number], RedeliverableRow & { at: number }>(
    `SELECT d.fact_pos, d.handler, d.lane, f.at FROM delivery_rows d JOIN facts f ON f.pos = d.fact_pos
     WHERE d.handler = ? AND d.status = 2 AND d.fact_pos > ? ORDER BY d.fact_pos LIMIT ${STEP}`,
  )
  const facts = db.prepare<[number], { pos: number; type: string; at: number; seq: string | null }>(
    `SELECT pos, type, at, seq FROM facts WHERE pos > ? ORDER BY pos LIMIT ${STEP}`,
  )
  const add = db.prepare<[number, number, number]>(
    `INSERT INTO delivery_rows (fact_pos, handler, lane, status, attempts, log) VALUES (?, ?, ?, 0, 0, '')`,
  )
  const again = db.prepare<[number, number, number]>(
    'UPDATE delivery_rows SET status = 0, attempts = 0, cut = 0, lane = ? WHERE fact_pos = ? AND handler = ?',
  )
  const forward = db.prepare<[number]>('UPDATE lanes SET due_at = 0 WHERE id = ? AND due_at > 0')
  const grow = db.prepare<[number]>('UPDATE lanes SET pending = pending + 1, due_at = 0 WHERE id = ?')
  const keyOf = db
    .prepare<[number, number], string>(
      "SELECT CASE ? WHEN 1 THEN coalesce(session_id, '') ELSE id END FROM facts WHERE pos = ?",
    )
    .pluck()
  const open = db
    .prepare<[number, string], number>(
      `INSERT INTO lanes (handler, key, pending, due_at) VALUES (?, ?, 1, 0)
       ON CONFLICT (handler, key) DO UPDATE SET pending = pending + 1, due_at = 0 RETURNING id`,
    )
    .pluck()

  /** Adds one pending delivery to its lane, which may be new. @returns the number of the lane. */
  const extend = (handler: number, pos: number): number => {
    const key = keyOf.get(lanes.configured.isOrdered(handler) ? 1 : 0, pos)
    const id = key === undefined ? undefined : open.get(handler, key)
    if (id === undefined) throw new Error('the lane was not written')
    return id
  }

  const revive = ({ fact_pos, handler, lane }: RedeliverableRow): void => {
    // An empty lane may have been removed.
    const id = grow.run(lane).changes === 1 ? lane : extend(handler, fact_pos)
    again.run(id, fact_pos, handler)
  }

  /** Makes a delivery pending. @returns false when it is pending already. */
  const handOver = (pos: number, handler: number): boolean => {
    const row = one.get(pos, handler)
    if (row?.status === 0) return false
    if (row === undefined) add.run(pos, handler, extend(handler, pos))
    else revive(row)
    return true
  }

  const retryOne = (id: string, dryRun: boolean): number => {
    const key = parseDeliveryId(id)
    const row = key === null ? undefined : one.get(key.pos, key.handlerNumber)
    if (row === undefined) return 0
    // A pending delivery that waits for its retry becomes due now.
    if (row.status === 0) return dryRun ? 0 : forward.run(row.lane).changes
    if (!dryRun) revive(row)
    return 1
  }

  const retryDead = async (handler: number, since: number, dryRun: boolean): Promise<number> => {
    let count = 0
    let reached = 0
    for (;;) {
      const looked = await write(() => {
        const page = dead.all(handler, reached)
        const chosen = page.filter(({ at }) => at >= since)
        if (!dryRun) for (const row of chosen) revive(row)
        return { page, chosen: chosen.length }
      })
      count += looked.chosen
      reached = looked.page.at(-1)?.fact_pos ?? reached
      if (looked.page.length < STEP) return count
    }
  }

  return {
    async retry({ id, handler, since, dryRun = false }) {
      if (id !== undefined) return await write(() => retryOne(id, dryRun))
      let count = 0
      for (const { name, number } of lanes.handlers()) {
        if (handler === undefined || handler === name)
          count += await retryDead(number, since ?? -Infinity, dryRun)
      }
      return count
    },
    async replay(number, wants, from) {
      const least = 'seq' in from ? seqOf(from.seq) : null
      let at: Place = { pos: 'pos' in from ? from.pos - 1 : 0, started: least === null }
      let count = 0
      for (;;) {
        const { pos, started } = at
        const step = await write(() => {
          const page = facts.all(pos)
          // State facts have no seq. The replay begins at the first frame in the log with this seq or a higher one, and
          // includes all state facts behind it.
          const first = started ? 0 : page.findIndex(({ seq }) => (seqOf(seq) ?? -1n) >= (least ?? 0n))
          const wanted = page.filter(
            (fact, index) =>
              first !== -1 && index >= first && wants(fact.type) && !('at' in from && fact.at < from.at),
          )
          const next = { pos: page.at(-1)?.pos ?? pos, started: first !== -1 }
          return {
            next,
            count: wanted.filter((fact) => handOver(fact.pos, number)).length,
            rows: page.length,
          }
        })
        at = step.next
        count += step.count
        if (step.rows < STEP) return count
      }
    },
  }
}
