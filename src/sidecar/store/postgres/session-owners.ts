import { isObject } from '../../../std/json.ts'
import type { Fact } from '../../../core/fact.ts'
import type { HeldFrames, Owner, OwnerNote, OwnerRecord } from '../../../core/scope.ts'
import type { Batch, Committed } from '../../../core/store.ts'
import { seqOf } from '../sqlite/log.ts'
import { TURN_ENDED } from '../sqlite/sessions.ts'
import type { Queries } from './database.ts'
import type { Hints } from './hints.ts'
import { checkpoints, type Facts } from './log.ts'
import type { Sessions } from './sessions.ts'

interface OwnerRow {
  session_id: string
  owner: Owner
  adopted_at: number | null
  from_seq: string | null
}

/** The owners of sessions, and held frames of sessions whose owner is not known yet. */
export const owners = {
  async rows(queries: Queries, ids: readonly string[]): Promise<Map<string, OwnerRow>> {
    if (ids.length === 0) return new Map()
    const rows = await queries.rows<OwnerRow>(
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

/** The fact of a held frame; only this program writes such rows. */
function factIn(text: string): Fact {
  const fact: unknown = JSON.parse(text)
  if (!isObject(fact)) throw new Error('a held frame cannot be read')
  return fact as unknown as Fact
}

function isOthers(row: OwnerRow | undefined): boolean {
  return row?.owner === 'foreign' || row?.owner === 'gone'
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
    const hints = batch.hints ?? []
    const readings = batch.readings ?? []
    const newCalls = batch.newCalls ?? []
    const named = [...facts, ...hints, ...readings, ...newCalls].flatMap(({ sessionId }) => sessionId ?? [])
    const rows = await owners.rows(queries, named)
    const ours: Fact[] = []
    const held: (Fact & { sessionId: string })[] = []
    for (const fact of facts) {
      const { sessionId, seq } = fact
      // A fact without a seq comes from a read, and only a session of ours makes such facts.
      if (sessionId === null || seq === null) ours.push(fact)
      else {
        const row = rows.get(sessionId)
        if (isOthers(row) || (await isBefore(queries, seq, row?.from_seq ?? null))) continue
        if (row?.owner === 'ours') ours.push(fact)
        else held.push({ ...fact, sessionId })
      }
    }
    if (held.length > 0) {
      await owners.hold(queries, held)
      into.hinted = true
    }
    // The first frame of a session makes a hint, and that read may be over already. Only a new read releases the held
    // frames.
    for (const id of new Set(held.map(({ sessionId }) => sessionId)))
      await this.#parts.hints.ensure(queries, id, times)
    if (held.length + moved > 0) into.held = await owners.held(queries)
    return {
      ...batch,
      facts: ours,
      hints: hints.filter(({ sessionId }) => sessionId === null || !isOthers(rows.get(sessionId))),
      readings: readings.filter(({ session, sessionId }) => {
        if (session === null || !isOthers(rows.get(sessionId))) return true
        into.stale.push(sessionId)
        return false
      }),
      newCalls: newCalls.filter(({ sessionId }) => !isOthers(rows.get(sessionId))),
    }
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
    await checkpoints.drop(queries, `items/${sessionId}`)
    return await owners.drop(queries, sessionId)
  }
}

/**
 * Whether a frame is from before the session became ours. If the cursor is below that boundary, the service restarted
 * its seqs, and no frame counts as earlier.
 */
async function isBefore(queries: Queries, seq: string, from: string | null): Promise<boolean> {
  const boundary = seqOf(from)
  const number = seqOf(seq)
  if (boundary === null || number === null || number > boundary) return false
  const cursor = seqOf(await checkpoints.get(queries, 'stream'))
  return cursor !== null && cursor >= boundary
}
