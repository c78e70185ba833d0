import { FIRST_LOOK, lastItemOf, PRUNED_SEQ } from '../../../core/checkpoint.ts'
import type { Expected, Miss } from '../../../core/store.ts'
import { MISSED_PLACE, missedOf, oldOf, type SeenRow } from '../missed.ts'
import { seqOf } from '../sqlite/log.ts'
import { SIGHTING_KEPT, STEP } from '../sqlite/prune.ts'
import type { Queries } from './database.ts'
import type { Lanes } from './lanes.ts'
import { checkpoints } from './log.ts'

/** Deleted sessions that one step removes. Other replicas wait for a step, so it has few statements. */
const SESSIONS = 100

interface OldFact {
  pos: number
  at: number
  seq: string | null
  pending: boolean
}

/** Removes old rows step by step; sqlite/prune.ts describes what it keeps, and why. */
export class Pruning {
  readonly #lanes: Lanes
  /** Where the walks through facts and lanes are. Each starts over at its end, so a skipped row is read again. */
  readonly #reached = { fact: 0, lane: 0 }

  constructor(lanes: Lanes) {
    this.#lanes = lanes
  }

  async step(queries: Queries, before: number, now: number): Promise<{ facts: number; more: boolean }> {
    const { facts, more } = await this.#facts(queries, before, now)
    await queries.change('DELETE FROM sidecar.sightings WHERE at < $1', [now - SIGHTING_KEPT])
    const calls = await queries.change(
      `DELETE FROM sidecar.calls WHERE call_id IN (SELECT c.call_id FROM sidecar.calls c WHERE c.ended_at < $1
         AND NOT EXISTS (SELECT 1 FROM sidecar.actions a WHERE a.call_id = c.call_id AND a.resolved_at IS NULL)
         AND NOT EXISTS (SELECT 1 FROM sidecar.hints h WHERE h.session_id = c.session_id) LIMIT ${STEP})`,
      [before],
    )
    const actions = await queries.change(
      `DELETE FROM sidecar.actions WHERE call_id IN (SELECT call_id FROM sidecar.actions WHERE resolved_at < $1 LIMIT ${STEP})`,
      [before],
    )
    const sessions = await this.#sessions(queries, before)
    const lanes = await this.#emptyLanes(queries)
    return { facts, more: more || calls === STEP || actions === STEP || sessions || lanes }
  }

  async #facts(queries: Queries, before: number, now: number): Promise<{ facts: number; more: boolean }> {
    const looked = await queries.rows<OldFact>(
      `SELECT pos, at, seq, EXISTS (SELECT 1 FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.status <> 1)
         OR f.wanted <> 0 AND EXISTS (SELECT 1 FROM sidecar.handlers h WHERE h.number <= 30 AND f.wanted >> h.number & 1 = 1
           AND NOT EXISTS (SELECT 1 FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = h.number)) AS pending
       FROM sidecar.facts f WHERE pos > $1::bigint ORDER BY pos LIMIT ${STEP}`,
      [this.#reached.fact],
    )
    const old = oldOf(looked, before, now)
    // A seq above the cursor was stored before the cursor was lost: the service may count from a lower number now.
    const cursor = seqOf(await checkpoints.get(queries, 'stream')) ?? 0n
    let highest = seqOf(await checkpoints.get(queries, PRUNED_SEQ)) ?? 0n
    const over = old.filter(({ pending, at }) => !pending && at < before)
    for (const { seq } of over) {
      const number = seqOf(seq)
      if (number !== null && number > highest && number <= cursor) highest = number
    }
    if (over.length > 0) {
      const positions = over.map(({ pos }) => pos)
      await queries.change('DELETE FROM sidecar.delivery_rows WHERE fact_pos = ANY ($1::bigint[])', [
        positions,
      ])
      await queries.change('DELETE FROM sidecar.facts WHERE pos = ANY ($1::bigint[])', [positions])
      await checkpoints.set(queries, PRUNED_SEQ, String(highest))
    }
    const whole = old.length === STEP
    this.#reached.fact = whole ? (old.at(-1)?.pos ?? 0) : 0
    return { facts: over.length, more: whole }
  }

  async #sessions(queries: Queries, before: number): Promise<boolean> {
    const gone = await queries.rows<{ id: string }>(
      `SELECT id FROM sidecar.sessions WHERE deleted_at < $1 LIMIT ${SESSIONS}`,
      [before],
    )
    if (gone.length === 0) return false
    const ids = gone.map(({ id }) => id)
    const turns = await queries.change(
      `DELETE FROM sidecar.turns WHERE id IN (SELECT id FROM sidecar.turns WHERE session_id = ANY ($1::text[]) LIMIT ${STEP})`,
      [ids],
    )
    if (turns === STEP) return true
    await queries.change('DELETE FROM sidecar.actions WHERE session_id = ANY ($1::text[])', [ids])
    await queries.change('DELETE FROM sidecar.sessions WHERE id = ANY ($1::text[])', [ids])
    // A session that left the scope still exists at the service: its owner is kept.
    await queries.change(
      "DELETE FROM sidecar.session_owners WHERE session_id = ANY ($1::text[]) AND owner <> 'foreign'",
      [ids],
    )
    await queries.change('DELETE FROM sidecar.checkpoints WHERE name = ANY ($1::text[])', [
      ids.map(lastItemOf),
    ])
    return gone.length === SESSIONS
  }

  async #emptyLanes(queries: Queries): Promise<boolean> {
    const looked = await queries.rows<{ id: number; pending: number }>(
      `SELECT id, pending FROM sidecar.lanes WHERE id > $1::bigint ORDER BY id LIMIT ${STEP}`,
      [this.#reached.lane],
    )
    const empty = looked.flatMap(({ id, pending }) =>
      pending === 0 && !this.#lanes.isClaimed(id) ? [id] : [],
    )
    const dropped =
      empty.length === 0
        ? 0
        : await queries.change('DELETE FROM sidecar.lanes WHERE id = ANY ($1::bigint[]) AND pending = 0', [
            empty,
          ])
    const whole = looked.length === STEP
    this.#reached.lane = whole ? (looked.at(-1)?.id ?? 0) : 0
    return whole && dropped > 0
  }
}

/** Facts that one step reads. */
const LOOKED = 2000

/** Walks the log once, step by step, and finds state facts that a channel did not announce. */
export async function findMissed(
  queries: Queries,
  expected: Expected,
  { before, now }: { before: number; now: number },
): Promise<{ missed: Miss[]; more: boolean }> {
  const looked = await queries.rows<SeenRow>(
    `SELECT pos, at, type, seen_stream, seen_webhook, seen_poll FROM sidecar.facts
     WHERE pos > $1::bigint ORDER BY pos LIMIT ${LOOKED}`,
    [Number((await checkpoints.get(queries, MISSED_PLACE)) ?? 0)],
  )
  const old = oldOf(looked, before, now)
  const missed = missedOf(old, expected, Number((await checkpoints.get(queries, FIRST_LOOK)) ?? 0))
  const last = old.at(-1)
  if (last !== undefined) await checkpoints.set(queries, MISSED_PLACE, String(last.pos))
  return { missed, more: old.length === LOOKED }
}
