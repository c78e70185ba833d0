import type { Hint } from '../../../core/hint.ts'
import type { ClaimedHint, HintClaim, HintedSession, Reading } from '../../../core/store.ts'
import {
  gather,
  HELD_DELAY,
  join,
  SCOPES,
  scopeOf,
  SWEEP,
  type HintRow,
  type Since,
} from '../sqlite/hints.ts'
import { seenOf } from '../sqlite/log.ts'
import { Claims } from './claims.ts'
import type { Queries } from './database.ts'
import { placeOf, type Membership } from '../membership.ts'

/** The generations of a process: no other gives one of these. */
const GENERATIONS = 2 ** 32
/** The lock of transactions that write hints. No other program uses this number. */
const LOCK = 7_305_262_419

/**
 * Webhooks about sessions A and B arrive at two replicas. Each replica writes two hints in two statements, one for A
 * and then B, the other for B and then A. Each waited for the other until the server cancelled one, after a second. So
 * such transactions run one after the other.
 */
export async function lockHints(queries: Queries): Promise<void> {
  await queries.rows('SELECT pg_advisory_xact_lock($1::bigint)', [LOCK])
}

/** The keyed work queue of sessions to read: one row for each session, for any number of hints. Claims live in memory. */
export class Hints {
  readonly #claims: Claims<string>
  /** What this process wrote to the row of each claimed key since it was claimed: the last generation, and the hints. */
  readonly #since = new Map<string, { generation: number; hints: Since | null }>()
  /** `generation` and `other_generation` of each claimed key at its claim. */
  readonly #before = new Map<string, readonly [number, number]>()
  readonly #membership: Membership
  readonly #process: number
  #generation: number

  /** `process`: a number that no other process has. */
  constructor(membership: Membership, process: number) {
    this.#membership = membership
    this.#claims = new Claims((shard) => membership.mayClaim(shard))
    this.#process = process
    this.#generation = process * GENERATIONS
  }

  /** The number of claims of a shard. */
  claimed(shard: number): number {
    return this.#claims.countOf(shard)
  }

  async add(queries: Queries, hints: readonly Hint[], now: number): Promise<void> {
    // In the order of their keys, as in every statement that changes several rows: so no two wait for each other.
    const sorted = [...gather(hints, now)].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const first = this.#generation + 1
    this.#generation += sorted.length
    await queries.change(
      `INSERT INTO sidecar.hints AS h (session_id, shard, generation, due_at, scope, seen_stream, seen_webhook, seen_poll, failures)
       SELECT *, 0 FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[])
       ON CONFLICT (session_id) DO UPDATE SET
         other_generation = CASE WHEN h.generation >> 32 = excluded.generation >> 32 THEN h.other_generation ELSE h.generation END,
         generation = excluded.generation,
         due_at = least(h.due_at, excluded.due_at),
         scope = h.scope | excluded.scope,
         seen_stream = coalesce(h.seen_stream, excluded.seen_stream),
         seen_webhook = coalesce(h.seen_webhook, excluded.seen_webhook),
         seen_poll = coalesce(h.seen_poll, excluded.seen_poll)`,
      [
        sorted.map(([key]) => key),
        sorted.map(([key]) => placeOf(key)),
        sorted.map((_, index) => first + index),
        sorted.map(([, row]) => row.due_at),
        sorted.map(([, row]) => row.scope),
        sorted.map(([, row]) => row.seen_stream),
        sorted.map(([, row]) => row.seen_webhook),
        sorted.map(([, row]) => row.seen_poll),
      ],
    )
    for (const [index, [key, row]] of sorted.entries()) this.#wrote(key, first + index, row)
  }

  /** This process wrote the row of a key: it made the row, or added `hints` to it. */
  #wrote(key: string, generation: number, hints: Since | null): void {
    if (!this.#claims.has(key)) return
    const before = this.#since.get(key)?.hints ?? null
    if (before !== null && hints !== null) join(before, hints)
    this.#since.set(key, { generation, hints: before ?? hints })
  }

  /** `except`: sessions whose hints are left out. */
  async claim(
    queries: Queries,
    { room, except }: { room: number; except: ReadonlySet<string> | undefined },
    now: number,
  ): Promise<HintedSession[]> {
    const { claimable } = this.#membership
    if (claimable?.length === 0) return []
    const rows = await this.#claims.claim(
      room,
      (limit) =>
        queries.rows<HintRow & { other_generation: number }>(
          `SELECT session_id, generation, other_generation, scope, failures, seen_stream, seen_webhook, seen_poll
           FROM sidecar.hints WHERE due_at <= $1::bigint AND ($3::smallint[] IS NULL OR shard = ANY ($3)) ORDER BY due_at LIMIT $2`,
          [Math.floor(now), limit, claimable],
        ),
      (row) => [row.session_id, placeOf(row.session_id)],
      except,
    )
    return rows.map((row) => {
      this.#before.set(row.session_id, [row.generation, row.other_generation])
      return {
        sessionId: row.session_id === SWEEP ? null : row.session_id,
        claim: { lease: this.#membership.leaseOf(placeOf(row.session_id)), generation: row.generation },
        elsewhere: Math.floor(row.generation / GENERATIONS) !== this.#process || row.other_generation !== 0,
        scope: scopeOf(row.scope),
        seen: seenOf(row),
        failures: row.failures,
      }
    })
  }

  async next(queries: Queries, except?: ReadonlySet<string>): Promise<number | null> {
    const { claimable } = this.#membership
    if (claimable?.length === 0) return null
    const row = await this.#claims.first(
      (limit) =>
        queries.rows<{ session_id: string; due_at: number }>(
          `SELECT session_id, due_at FROM sidecar.hints WHERE $2::smallint[] IS NULL OR shard = ANY ($2) ORDER BY due_at LIMIT $1`,
          [limit, claimable],
        ),
      (one) => one.session_id,
      except,
    )
    return row?.due_at ?? null
  }

  /** Adds a hint unless the session has one. */
  async ensure(queries: Queries, sessionId: string, { at, now }: { at: number; now: number }): Promise<void> {
    const generation = ++this.#generation
    const added = await queries.change(
      `INSERT INTO sidecar.hints (session_id, shard, generation, due_at, scope, seen_stream, failures)
       VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT (session_id) DO NOTHING`,
      [sessionId, placeOf(sessionId), generation, Math.floor(now + HELD_DELAY), SCOPES.session, at],
    )
    if (added > 0) this.#wrote(sessionId, generation, null)
  }

  /** Removes the hint of a session that is no longer read. */
  async drop(queries: Queries, sessionId: string): Promise<void> {
    await queries.change('DELETE FROM sidecar.hints WHERE session_id = $1', [sessionId])
    this.#since.delete(sessionId)
  }

  /** Called inside the transaction that stores the result of the read. */
  async done(
    queries: Queries,
    sessionId: string,
    { claim, lookAfter, scope }: Reading['hint'],
    now: number,
  ): Promise<void> {
    if (claim !== null) await this.#answer(queries, sessionId, claim)
    if (lookAfter === null) return
    const generation = ++this.#generation
    const [row] = await queries.rows<{ generation: number }>(
      `INSERT INTO sidecar.hints AS h (session_id, shard, generation, due_at, scope, failures) VALUES ($1, $2, $3, $4, $5, 0)
       ON CONFLICT (session_id) DO UPDATE SET due_at = least(h.due_at, excluded.due_at),
         scope = h.scope | excluded.scope, failures = 0
       RETURNING generation`,
      [sessionId, placeOf(sessionId), generation, Math.ceil(now + lookAfter), SCOPES[scope]],
    )
    if (row?.generation === generation) this.#wrote(sessionId, generation, null)
  }

  /**
   * A sweep is complete. It may take longer than the time between two small sweeps: a request that came meanwhile
   * stays.
   */
  async swept(queries: Queries, { claim }: ClaimedHint): Promise<void> {
    if (this.#membership.holds(claim.lease)) await this.#answer(queries, SWEEP, claim)
  }

  /** Everything that was requested before the claim is answered; only later requests remain. */
  async #answer(queries: Queries, key: string, { generation }: HintClaim): Promise<void> {
    const cleared = await queries.change(
      'DELETE FROM sidecar.hints WHERE session_id = $1 AND generation = $2::bigint',
      [key, generation],
    )
    const since = this.#since.get(key)
    if (cleared > 0 || !since?.hints) return
    const { due_at, scope, seen_stream, seen_webhook, seen_poll } = since.hints
    // If another process added a hint meanwhile, this process does not know it: then the row stays as it is.
    await queries.change(
      `UPDATE sidecar.hints SET due_at = $2, scope = $3, failures = 0, seen_stream = $4, seen_webhook = $5, seen_poll = $6
       WHERE session_id = $1 AND generation = $7::bigint AND other_generation IN (0, $8::bigint, $9::bigint)`,
      [
        key,
        due_at,
        scope,
        seen_stream,
        seen_webhook,
        seen_poll,
        since.generation,
        ...(this.#before.get(key) ?? [generation, 0]),
      ],
    )
  }

  /** After a read that failed: the hint is due again later. */
  async postpone(queries: Queries, { sessionId, claim }: ClaimedHint, dueAt: number): Promise<void> {
    if (!this.#membership.holds(claim.lease)) return
    await queries.change(
      'UPDATE sidecar.hints SET due_at = $1, failures = failures + 1 WHERE session_id = $2',
      [Math.ceil(dueAt), sessionId ?? SWEEP],
    )
  }

  /** After a read that must be repeated: hints since its claim are due at once. */
  async defer(queries: Queries, { sessionId, claim }: ClaimedHint, dueAt: number): Promise<void> {
    if (!this.#membership.holds(claim.lease)) return
    const key = sessionId ?? SWEEP
    const since = this.#since.get(key)
    const [generation, other] = this.#before.get(key) ?? [claim.generation, 0]
    await queries.change(
      `UPDATE sidecar.hints SET due_at = $1 WHERE session_id = $2 AND generation = $3::bigint
         AND (generation = $4::bigint OR other_generation IN (0, $4::bigint, $5::bigint))`,
      [
        Math.ceil(Math.min(dueAt, since?.hints?.due_at ?? Infinity)),
        key,
        since?.generation ?? generation,
        generation,
        other,
      ],
    )
  }

  release({ sessionId, claim }: ClaimedHint): void {
    if (!this.#membership.holds(claim.lease)) return
    this.#since.delete(sessionId ?? SWEEP)
    this.#before.delete(sessionId ?? SWEEP)
    this.#claims.release(sessionId ?? SWEEP)
  }
}
