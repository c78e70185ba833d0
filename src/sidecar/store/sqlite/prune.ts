import { lastItemOf, PRUNED_SEQ } from '../../../core/checkpoint.ts'
import { type Checkpoints, seqOf } from './log.ts'
import type { Lanes } from './lanes.ts'
import { oldOf } from '../missed.ts'
import type { Sqlite } from './open.ts'

/** Rows of a table that one step reads; no other work of the store runs meanwhile. */
export const STEP = 500
/** A sighting without a fact is kept for this long, milliseconds. */
export const SIGHTING_KEPT = 15 * 60_000

interface OldFact {
  pos: number
  session_id: string | null
  at: number
  seq: string | null
  pending: number
}

/**
 * Removes delivered facts older than `before`, step by step. A fact with a pending or dead delivery stays. A call stays
 * while its session requires its action or has a hint: after removal, the next read would take it for a new call and
 * run it again.
 * @returns the next step, to be called inside a transaction; it returns the number of removed facts and whether there
 * are more.
 */
export function createPruning(
  db: Sqlite,
  lanes: Lanes,
  checkpoints: Checkpoints,
): (before: number, now: number) => { facts: number; more: boolean } {
  const oldest = db.prepare<[number], OldFact>(
    `SELECT pos, session_id, at, seq, EXISTS (SELECT 1 FROM delivery_rows WHERE fact_pos = pos AND status <> 1) AS pending
     FROM facts WHERE pos > ? ORDER BY pos LIMIT ${STEP}`,
  )
  const dropDeliveries = db.prepare<[number]>('DELETE FROM delivery_rows WHERE fact_pos = ?')
  const dropFact = db.prepare<[number]>('DELETE FROM facts WHERE pos = ?')
  const dropOfSession = db.prepare<[string, number]>(
    'DELETE FROM session_facts WHERE session_id = ? AND pos = ?',
  )
  const dropSightings = db.prepare<[number]>('DELETE FROM sightings WHERE at < ?')
  const dropCalls = db.prepare<[number]>(
    `DELETE FROM calls WHERE call_id IN (SELECT call_id FROM calls WHERE ended_at < ?
       AND NOT EXISTS (SELECT 1 FROM actions WHERE actions.call_id = calls.call_id AND resolved_at IS NULL)
       AND NOT EXISTS (SELECT 1 FROM hints WHERE hints.session_id = calls.session_id) LIMIT ${STEP})`,
  )
  const dropActions = db.prepare<[number]>(
    `DELETE FROM actions WHERE call_id IN (SELECT call_id FROM actions WHERE resolved_at < ? LIMIT ${STEP})`,
  )
  const goneSession = db
    .prepare<[number], string>('SELECT id FROM sessions WHERE deleted_at < ? LIMIT 1')
    .pluck()
  const dropTurns = db.prepare<[string]>(
    `DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE session_id = ? LIMIT ${STEP})`,
  )
  const dropActionsOf = db.prepare<[string]>('DELETE FROM actions WHERE session_id = ?')
  const dropSession = db.prepare<[string]>('DELETE FROM sessions WHERE id = ?')
  // A session that left the scope still exists at the service: its owner is kept.
  const dropOwner = db.prepare<[string]>(
    "DELETE FROM session_owners WHERE session_id = ? AND owner <> 'foreign'",
  )
  const dropCheckpoint = db.prepare<[string]>('DELETE FROM checkpoints WHERE name = ?')
  const nextLanes = db.prepare<[number], { id: number; pending: number }>(
    `SELECT id, pending FROM lanes WHERE id > ? ORDER BY id LIMIT ${STEP}`,
  )
  const dropLane = db.prepare<[number]>('DELETE FROM lanes WHERE id = ? AND pending = 0')
  /** Where the walks through facts and lanes are. Each starts over at its end, so a skipped row is read again. */
  const reached = { fact: 0, lane: 0 }

  const pruneFacts = (before: number, now: number): { facts: number; more: boolean } => {
    const looked = oldest.all(reached.fact)
    const old = oldOf(looked, before, now)
    let facts = 0
    let highest = seqOf(checkpoints.get(PRUNED_SEQ)) ?? 0n
    // A seq above the cursor was stored before the cursor was lost: the service may count from a lower number now.
    const cursor = seqOf(checkpoints.get('stream')) ?? 0n
    for (const { pos, session_id: sessionId, at, seq, pending } of old) {
      // The next walk reads it again.
      if (pending === 1 || at >= before) continue
      dropDeliveries.run(pos)
      dropFact.run(pos)
      if (sessionId !== null) dropOfSession.run(sessionId, pos)
      facts++
      const number = seqOf(seq)
      if (number !== null && number > highest && number <= cursor) highest = number
    }
    if (facts > 0) checkpoints.set(PRUNED_SEQ, String(highest))
    const whole = old.length === STEP
    reached.fact = whole ? (old.at(-1)?.pos ?? 0) : 0
    return { facts, more: whole }
  }

  const pruneSessions = (before: number): boolean => {
    let rows = 0
    while (rows < STEP) {
      const id = goneSession.get(before)
      if (id === undefined) return false
      const { changes } = dropTurns.run(id)
      rows += changes + 1
      if (changes === STEP) continue
      dropActionsOf.run(id)
      dropSession.run(id)
      dropOwner.run(id)
      dropCheckpoint.run(lastItemOf(id))
    }
    return true
  }

  const pruneLanes = (): boolean => {
    const looked = nextLanes.all(reached.lane)
    let dropped = 0
    for (const { id, pending } of looked)
      if (pending === 0 && !lanes.isClaimed(id)) dropped += dropLane.run(id).changes
    const whole = looked.length === STEP
    reached.lane = whole ? (looked.at(-1)?.id ?? 0) : 0
    return whole && dropped > 0
  }

  return (before, now) => {
    const { facts, more } = pruneFacts(before, now)
    dropSightings.run(now - SIGHTING_KEPT)
    const calls = dropCalls.run(before).changes
    const actions = dropActions.run(before).changes
    const sessions = pruneSessions(before)
    return {
      facts,
      more: [more, calls === STEP, actions === STEP, sessions, pruneLanes()].includes(true),
    }
  }
}
