import { newCall, type AddedCall, type Call, type CallRoom, type ClaimedCall } from '../../../core/call.ts'
import { transition, type CallStep } from '../../../core/call-machine.ts'
import type { Lease } from '../../../core/lease.ts'
import { CALL, callOf, callRow, columnOf, FIELDS, type CallRow, type Due } from '../sqlite/calls.ts'
import { Claims } from './claims.ts'
import type { Queries } from './database.ts'
import { placeOf, type Membership } from '../membership.ts'

const WAITING = "ended_at IS NULL AND state = 'received'"
const MOVING = "ended_at IS NULL AND state <> 'received'"
const NAMES = `WITH RECURSIVE names(name) AS (
    SELECT min(name) FROM sidecar.calls WHERE ${WAITING}
    UNION ALL
    SELECT (SELECT min(name) FROM sidecar.calls WHERE ${WAITING} AND name > names.name) FROM names WHERE names.name IS NOT NULL
  ) SELECT name FROM names WHERE name IS NOT NULL`

/** The ledger of function calls. A step is refused unless the call is in the state that the caller expects. */
export class Calls {
  readonly #claims: Claims<string>
  readonly #membership: Membership
  /** The ids that the next statement of `get` will read. */
  readonly #requested = new Set<string>()
  #found: Promise<CallRow[]> = Promise.resolve([])

  constructor(membership: Membership) {
    this.#membership = membership
    this.#claims = new Claims((shard) => membership.mayClaim(shard))
  }

  /** The number of claims of a shard. */
  claimed(shard: number): number {
    return this.#claims.countOf(shard)
  }

  /**
   * A session that waits for hundreds of calls reports all of them at each read, so most of `calls` are known. `taken`:
   * gets the ids of those that are claimed.
   * @returns those that were not known.
   */
  async add(
    queries: Queries,
    calls: readonly Call[],
    { now, taken }: { now: number; taken: Set<string> },
  ): Promise<AddedCall[]> {
    const known = new Set(
      (
        await this.#find(
          queries,
          calls.map(({ callId }) => callId),
        )
      ).map(({ callId }) => callId),
    )
    const added: AddedCall[] = []
    for (const given of calls) {
      const { callId } = given
      if (known.has(callId)) continue
      const { call, lease } = this.#take(given)
      if (lease !== null) taken.add(callId)
      if (await this.#insert(queries, call, now)) added.push({ callId, lease })
    }
    return added
  }

  async #insert(queries: Queries, call: Call, now: number): Promise<boolean> {
    const row = callRow(call)
    const added = await queries.change(
      `INSERT INTO sidecar.calls (due_at, shard, ${FIELDS.map(columnOf).join(', ')})
       VALUES ($1, $2, ${FIELDS.map((_, index) => `$${index + 3}`).join(', ')}) ON CONFLICT DO NOTHING`,
      [Math.floor(now), placeOf(call.sessionId), ...FIELDS.map((field) => row[field])],
    )
    return added === 1
  }

  /** @returns the shard of the call; null: refused. */
  async step(
    queries: Queries,
    { callId, event, after, lease }: CallStep,
    now: number,
  ): Promise<number | null> {
    if (lease !== undefined && !this.#membership.holds(lease)) return null
    const [row] = await queries.rows<CallRow>(
      `SELECT ${CALL} FROM sidecar.calls WHERE call_id = $1 FOR UPDATE`,
      [callId],
    )
    if (row === undefined) return null
    const stepped = transition(callOf(row), event)
    if (stepped === null) return null
    const next = callRow(stepped)
    await queries.change(
      `UPDATE sidecar.calls SET due_at = coalesce($2::bigint, due_at),
         ${FIELDS.map((field, index) => `${columnOf(field)} = $${index + 3}`).join(', ')} WHERE call_id = $1`,
      [callId, after === undefined ? null : Math.ceil(now + after), ...FIELDS.map((field) => next[field])],
    )
    return placeOf(row.sessionId)
  }

  /**
   * Makes the calls due that wait for the app and that the session no longer requires, so that the tool host closes
   * them.
   */
  async wakeOthers(queries: Queries, sessionId: string, required: readonly string[]): Promise<void> {
    await queries.change(
      `UPDATE sidecar.calls SET due_at = 0 WHERE session_id = $1 AND deferred = 1 AND ended_at IS NULL
         AND call_id <> ALL ($2::text[])`,
      [sessionId, required],
    )
  }

  /** Requests that the program makes before it awaits anything share one statement. */
  async get(queries: Queries, callId: string): Promise<Call | null> {
    if (this.#requested.size === 0) {
      this.#found = Promise.resolve().then(() => {
        const ids = [...this.#requested]
        this.#requested.clear()
        return this.#find(queries, ids)
      })
    }
    this.#requested.add(callId)
    const row = (await this.#found).find((one) => one.callId === callId)
    return row === undefined ? null : callOf(row)
  }

  #find(queries: Queries, callIds: readonly string[]): Promise<CallRow[]> {
    return queries.rows<CallRow>(`SELECT ${CALL} FROM sidecar.calls WHERE call_id = ANY ($1::text[])`, [
      callIds,
    ])
  }

  async claim(queries: Queries, room: CallRoom, now: number): Promise<ClaimedCall[]> {
    const { claimable } = this.#membership
    if (claimable?.length === 0) return []
    const due = Math.floor(now)
    const claimed: ClaimedCall[] = []
    const take = async (places: number, find: (limit: number) => Promise<CallRow[]>): Promise<void> => {
      const rows = await this.#claims.claim(places, find, (row) => [row.callId, placeOf(row.sessionId)])
      for (const row of rows)
        claimed.push({ call: callOf(row), lease: this.#membership.leaseOf(placeOf(row.sessionId)) })
    }
    try {
      await take(room.others, (limit) =>
        queries.rows<CallRow>(
          `SELECT ${CALL} FROM sidecar.calls WHERE ${MOVING} AND due_at <= $1::bigint
             AND ($3::smallint[] IS NULL OR shard = ANY ($3)) ORDER BY due_at LIMIT $2`,
          [due, limit, claimable],
        ),
      )
      for (const name of await this.#names(queries))
        await take(room.of(name), (limit) =>
          queries.rows<CallRow>(
            `SELECT ${CALL} FROM sidecar.calls WHERE ${WAITING} AND name = $1 AND due_at <= $2::bigint
               AND ($4::smallint[] IS NULL OR shard = ANY ($4)) ORDER BY due_at LIMIT $3`,
            [name, due, limit, claimable],
          ),
        )
      return claimed
    } catch (error) {
      // The database broke between two statements.
      for (const { call, lease } of claimed) this.release(call.callId, lease)
      throw error
    }
  }

  /**
   * A call that is written as running is worked on by the tool host that wrote it. It is claimed before it is written,
   * so that its shard is not handed over meanwhile. If the shard belongs to another process, the call is written as
   * new, and is not run here.
   */
  #take(call: Call): { call: Call; lease: Lease | null } {
    if (call.state !== 'running') return { call, lease: null }
    const shard = placeOf(call.sessionId)
    if (!this.#membership.mayClaim(shard) || this.#claims.has(call.callId))
      return { call: newCall(call), lease: null }
    this.#claims.add(call.callId, shard)
    return { call, lease: this.#membership.leaseOf(shard) }
  }

  /** Releases the claims that `add` made, because their commit failed or begins again. */
  withdraw(taken: Iterable<string>): void {
    for (const callId of taken) this.#claims.release(callId)
  }

  release(callId: string, lease: Lease): void {
    if (this.#membership.holds(lease)) this.#claims.release(callId)
  }

  async next(queries: Queries, room: CallRoom): Promise<number | null> {
    const first = (find: (limit: number) => Promise<Due[]>): Promise<Due | null> =>
      this.#claims.first(find, (row) => row.call_id)
    const { claimable } = this.#membership
    if (claimable?.length === 0) return null
    const due: number[] = []
    if (room.others > 0) {
      const row = await first((limit) =>
        queries.rows<Due>(
          `SELECT call_id, due_at FROM sidecar.calls WHERE ${MOVING} AND ($2::smallint[] IS NULL OR shard = ANY ($2))
           ORDER BY due_at LIMIT $1`,
          [limit, claimable],
        ),
      )
      if (row !== null) due.push(row.due_at)
    }
    for (const name of await this.#names(queries)) {
      if (room.of(name) <= 0) continue
      const row = await first((limit) =>
        queries.rows<Due>(
          `SELECT call_id, due_at FROM sidecar.calls WHERE ${WAITING} AND name = $1
             AND ($3::smallint[] IS NULL OR shard = ANY ($3)) ORDER BY due_at LIMIT $2`,
          [name, limit, claimable],
        ),
      )
      if (row !== null) due.push(row.due_at)
    }
    return due.length === 0 ? null : Math.min(...due)
  }

  async #names(queries: Queries): Promise<string[]> {
    return (await queries.rows<{ name: string }>(NAMES)).map(({ name }) => name)
  }
}
