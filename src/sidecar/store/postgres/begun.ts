import type { Lane } from '../../../core/delivery.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import { CUT, LONG } from '../attempt.ts'
import type { Part } from './committer.ts'
import type { Queries, Transaction } from './database.ts'

type Write = (run: (queries: Queries) => Promise<void>, effect?: () => void) => Promise<unknown>

interface Begun {
  handler: number
  positions: readonly number[]
  shard: number
  /** Our wall clock. */
  at: number
  /** Steady milliseconds. */
  since: number
}

/**
 * A handler gets three POSTs of one fact, and the sidecar is killed during the first two: both must show as attempts. So an
 * attempt that takes long is recorded as begun, by the next commit or by one of its own.
 */
export class BegunAttempts implements Part {
  readonly #clock: Clock
  readonly #write: Write
  /** By lane, the oldest first; a lane makes one attempt at a time. */
  readonly #unwritten = new Map<number, Begun>()
  readonly #written = new Set<string>()
  #staged: [lane: number, begun: Begun][] = []
  #timer: Timer | null = null

  constructor(clock: Clock, write: Write) {
    this.#clock = clock
    this.#write = write
  }

  begin(lane: Lane, handler: number, attempt: { positions: readonly number[]; shard: number }): void {
    const since = this.#clock.steady()
    this.#unwritten.delete(lane.id)
    this.#unwritten.set(lane.id, { handler, ...attempt, at: this.#clock.now(), since })
    this.#arm(since)
  }

  /** The attempt has an outcome, which is stored soon. */
  end(lane: Lane): void {
    this.#unwritten.delete(lane.id)
  }

  /** Removes the rows of attempts, inside the transaction that stores their outcomes. */
  async settle(
    queries: Queries,
    settled: readonly { lane: Lane; handler: number; pos: number }[],
  ): Promise<void> {
    for (const { lane, pos } of settled) this.#forget(lane, pos)
    const written = settled.filter(({ handler, pos }) => this.#written.has(keyOf(handler, pos)))
    if (written.length === 0) return
    await queries.change(
      `DELETE FROM sidecar.begun b USING unnest($1::bigint[], $2::int[]) AS s(pos, handler)
       WHERE b.fact_pos = s.pos AND b.handler = s.handler`,
      [written.map(({ pos }) => pos), written.map(({ handler }) => handler)],
    )
  }

  /** Called after the commit of `settle`. */
  settled(handler: number, pos: number): void {
    if (this.#written.size > 0) this.#written.delete(keyOf(handler, pos))
  }

  /** Removes the row of an attempt whose outcome is not stored. */
  drop(lane: Lane, handler: number, positions: readonly number[]): void {
    for (const pos of positions) this.#forget(lane, pos)
    // A commit that is under way may write the row. The write that removes the row comes after that commit.
    const underWay = this.#staged.some(([id]) => id === lane.id)
    if (!underWay && !positions.some((pos) => this.#written.has(keyOf(handler, pos)))) return
    // If this fails, the row stays, and shows as an interrupted attempt after the next start.
    this.#write(
      (queries) =>
        this.settle(
          queries,
          positions.map((pos) => ({ lane, handler, pos })),
        ),
      () => positions.forEach((pos) => this.settled(handler, pos)),
    ).catch(() => undefined)
  }

  #forget(lane: Lane, pos: number): void {
    if (this.#unwritten.get(lane.id)?.positions.includes(pos) === true) this.#unwritten.delete(lane.id)
  }

  async note(transaction: Transaction): Promise<void> {
    this.#staged = []
    const before = this.#clock.steady() - LONG
    for (const [lane, begun] of this.#unwritten) {
      if (begun.since > before) break
      this.#staged.push([lane, begun])
    }
    if (this.#staged.length === 0) return
    const rows = this.#staged.flatMap(([, { positions, ...begun }]) =>
      positions.map((pos) => ({ pos, ...begun })),
    )
    await transaction.change(
      `INSERT INTO sidecar.begun SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::smallint[]) ON CONFLICT DO NOTHING`,
      [
        rows.map(({ pos }) => pos),
        rows.map(({ handler }) => handler),
        rows.map(({ at }) => at),
        rows.map(({ shard }) => shard),
      ],
    )
  }

  committed(): void {
    // The outcome of an attempt may have become known while the commit was under way: then the next commit removes the
    // row.
    for (const [lane, begun] of this.#staged)
      if (this.#unwritten.get(lane) === begun) this.#unwritten.delete(lane)
    this.unknown()
  }

  /** The rows may have been stored: the transaction that stores the outcomes removes them. */
  unknown(): void {
    for (const [, { handler, positions }] of this.#staged)
      for (const pos of positions) this.#written.add(keyOf(handler, pos))
    this.#staged = []
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** One timer for all attempts. A transaction that fails is tried again when the next attempt begins. */
  #arm(since: number): void {
    if (this.#timer !== null) return
    this.#timer = this.#clock.after(Math.max(1, since + LONG - this.#clock.steady()), () => {
      this.#timer = null
      this.#writeLong().catch(() => undefined)
    })
  }

  async #writeLong(): Promise<void> {
    if (this.#oldest() <= this.#clock.steady() - LONG) await this.#write(async () => undefined)
    const next = this.#oldest()
    if (next < Infinity) this.#arm(next)
  }

  #oldest(): number {
    const [oldest] = this.#unwritten.values()
    return oldest?.since ?? Infinity
  }
}

function keyOf(handler: number, pos: number): string {
  return `${handler}/${pos}`
}

/**
 * Records the open attempts of the former owner of shards as interrupted. An interrupted attempt raises the attempt
 * number, and does not count against the retry policy.
 *
 * 200 attempts were cut amid a million pending deliveries. As a plain join this computed all pending deliveries for each
 * of them, so no process could take the shards. OFFSET 0 keeps the planner from that.
 */
export async function recoverBegun(queries: Queries, shards: readonly number[]): Promise<void> {
  await queries.change(
    `WITH left_over AS (DELETE FROM sidecar.begun WHERE shard = ANY ($1::smallint[]) RETURNING fact_pos, handler, at)
     INSERT INTO sidecar.delivery_rows AS d (fact_pos, handler, lane, status, attempts, cut, log)
     SELECT l.fact_pos, l.handler, p.lane, 0, 0, 1, '{"at":' || l.at || ',"error":"${CUT}","ms":0}'
     FROM left_over l, LATERAL (SELECT lane FROM sidecar.deliveries p
       WHERE p.fact_pos = l.fact_pos AND p.handler = l.handler AND p.status = 0 OFFSET 0) p
     ON CONFLICT (fact_pos, handler) DO UPDATE SET cut = d.cut + 1,
       log = d.log || CASE d.log WHEN '' THEN '' ELSE ',' END || excluded.log`,
    [shards],
  )
}
