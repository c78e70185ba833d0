import { lastItemOf } from '../../../core/checkpoint.ts'
import type { Fact } from '../../../core/fact.ts'
import type { HeldFrames, OwnerNote, OwnerRecord } from '../../../core/scope.ts'
import type { Batch, Committed } from '../../../core/store.ts'
import { factIn, sift, type OwnerRow } from '../sqlite/session-owners.ts'
import { TURN_ENDED } from '../sqlite/sessions.ts'
import type { Queries } from './database.ts'
import type { Hints } from './hints.ts'
import { checkpoints, type Facts } from './log.ts'
import type { Sessions } from './sessions.ts'

/** The owners of sessions, and held frames of sessions whose owner is not known yet. */
export const owners = {
  async rows(queries: Queries, ids: readonly string[]): Promise<Map<string, OwnerRow>> {
    if (ids.length === 0) return new Map()
    const rows = await queries.rows<OwnerRow & { session_id: string }>(
      'SELECT session_id, owner, adopted_at, from_seq FROM sidecar.session_owners WHERE session_id = ANY ($1::text[])',
      [[...new Set(ids)]],
    )
    return new Map(rows.map((row) => [row.session_id, row]))
  },

  async of(queries: Queries, ids: readonly string[]): Promise<Map<string, OwnerRecord>> {
    const rows = await owners.rows(queries, ids)
    return new Map([...rows].map(([id, { owner, adopted_at }]) => [id, { owner, adoptedAt: adopted_at }]))
  },

  async note(queries: Queries, { sessionId, owner, adoptedAt, at }: OwnerNote): Promise<void> {
    if (owner === 'unknown') {
      await queries.change('DELETE FROM sidecar.session_owners WHERE session_id = $1', [sessionId])
      return
    }
    const before = (await owners.rows(queries, [sessionId])).get(sessionId)
    const cursor = owner === 'pending' ? await checkpoints.get(queries, 'stream') : (before?.from_seq ?? null)
    await queries.change(
      `INSERT INTO sidecar.session_owners (session_id, owner, noted_at, adopted_at, from_seq) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, noted_at = excluded.noted_at,
         adopted_at = excluded.adopted_at, from_seq = excluded.from_seq`,
      [sessionId, owner, at, adoptedAt ?? before?.adopted_at ?? null, cursor],
    )
  },

  /** Removes and returns the held frames of a session, in their order. */
  async release(queries: Queries, sessionId: string): Promise<Fact[]> {
    const rows = await queries.rows<{ pos: number; fact: string }>(
      'DELETE FROM sidecar.held_frames WHERE session_id = $1 RETURNING pos, fact',
      [sessionId],
    )
    return rows.toSorted((a, b) => a.pos - b.pos).map(({ fact }) => factIn(fact))
  },

  /** @returns how many there were. */
  async drop(queries: Queries, sessionId: string): Promise<number> {
    return await queries.change('DELETE FROM sidecar.held_frames WHERE session_id = $1', [sessionId])
  },

  async hold(queries: Queries, facts: readonly (Fact & { sessionId: string })[]): Promise<void> {
    await queries.change(
      `WITH drawn AS (UPDATE sidecar.positions SET last = last + $1::bigint WHERE name = 'held_frames' RETURNING last - $1::bigint AS base)
       INSERT INTO sidecar.held_frames (pos, session_id, id, characters, fact)
       SELECT drawn.base + h.nth, h.session_id, h.id, h.characters, h.fact
       FROM drawn, unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) WITH ORDINALITY AS h(session_id, id, characters, fact, nth)
       ON CONFLICT (id) DO NOTHING`,
      [
        facts.length,
        facts.map(({ sessionId }) => sessionId),
        facts.map(({ id }) => id),
        facts.map(({ body }) => body.length),
        facts.map((fact) => JSON.stringify(fact)),
      ],
    )
  },

  async held(queries: Queries): Promise<HeldFrames> {
    const [row] = await queries.rows<HeldFrames>(
      'SELECT count(*) AS frames, coalesce(sum(characters), 0)::bigint AS characters FROM sidecar.held_frames',
    )
    return row ?? { frames: 0, characters: 0 }
  },

  async strangers(queries: Queries, before: number, after: string, limit: number): Promise<string[]> {
    const rows = await queries.rows<{ session_id: string }>(
      `SELECT o.session_id FROM sidecar.session_owners o WHERE o.noted_at < $1 AND o.session_id > $2
         AND NOT (o.owner = 'ours' AND EXISTS (SELECT 1 FROM sidecar.sessions s WHERE s.id = o.session_id))
       ORDER BY o.session_id LIMIT $3`,
      [before, after, limit],
    )
    return rows.map((row) => row.session_id)
  },

  async countForeign(queries: Queries): Promise<number> {
    const [row] = await queries.rows<{ count: number }>(
      "SELECT count(*) AS count FROM sidecar.session_owners WHERE owner = 'foreign'",
    )
    return row?.count ?? 0
  },
}

interface ScopingParts {
  facts: Facts
  hints: Hints
  sessions: Sessions
}

/** Inside the transaction of a batch with a scope: stores the owners of its sessions, and returns the part that is ours. */
export class Scoping {
  readonly #parts: ScopingParts

  constructor(parts: ScopingParts) {
    this.#parts = parts
  }

  async apply(
    queries: Queries,
    batch: Batch,
    into: Committed,
    times: { at: number; now: number },
  ): Promise<Batch> {
    let moved = 0
    for (const one of batch.owners ?? []) moved += await this.#note(queries, one, into)
    const facts = await this.#parts.facts.unpruned(queries, batch.facts ?? [])
    const { hints = [], readings = [], newCalls = [] } = batch
    const named = [...facts, ...hints, ...readings, ...newCalls].flatMap(({ sessionId }) => sessionId ?? [])
    const rows = await owners.rows(queries, named)
    const isBounded = [...rows.values()].some((row) => row.from_seq !== null)
    const cursor = isBounded ? await checkpoints.get(queries, 'stream') : null
    const { ours, held, stale } = sift({ ...batch, facts }, (id) => rows.get(id), cursor)
    into.stale.push(...stale)
    if (held.length > 0) {
      await owners.hold(queries, held)
      into.hinted = true
    }
    // The first frame of a session makes a hint, and that read may be over already. Only a new read releases the held
    // frames.
    for (const id of new Set(held.map(({ sessionId }) => sessionId)))
      await this.#parts.hints.ensure(queries, id, times)
    if (held.length + moved > 0) into.held = await owners.held(queries)
    return { ...batch, ...ours }
  }

  /** @returns how many held frames were released or dropped. */
  async #note(queries: Queries, one: OwnerNote, into: Committed): Promise<number> {
    const { sessionId, owner, at } = one
    await owners.note(queries, one)
    if (owner === 'ours') return await this.#release(queries, sessionId, into)
    if (owner !== 'foreign' && owner !== 'gone') return 0
    const dropped = await this.#leave(queries, sessionId, at)
    if (owner === 'gone') into.unattributed = (into.unattributed ?? 0) + dropped
    return dropped
  }

  async #release(queries: Queries, sessionId: string, into: Committed): Promise<number> {
    const released = await owners.release(queries, sessionId)
    await this.#parts.facts.release(queries, released, into)
    for (const fact of released)
      if (fact.type === TURN_ENDED) await this.#parts.sessions.endTurn(queries, fact)
    return released.length
  }

  /** The session is no longer ours: its hint and its held frames are dropped. Pending deliveries are still made. */
  async #leave(queries: Queries, sessionId: string, at: number): Promise<number> {
    await this.#parts.hints.drop(queries, sessionId)
    await this.#parts.sessions.leave(queries, sessionId, at)
    // If the session becomes ours again, items of the time in between make no facts.
    await checkpoints.drop(queries, lastItemOf(sessionId))
    return await owners.drop(queries, sessionId)
  }
}
