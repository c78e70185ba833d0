import type { RetrySelection } from '../../core/store.ts'
import { parseDeliveryId } from '../../core/delivery.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Lanes } from './lanes.ts'
import { seqOf } from './log.ts'
import type { Sqlite } from './open.ts'

/** Facts looked at in one transaction of pruning, so that nobody waits long for it. */
const CHUNK = 2000
/** A sighting that no fact followed within this is of no use, milliseconds. */
const SIGHTING_KEPT = 15 * 60_000
/** Entries of the quarantine; the oldest go first. */
export const QUARANTINE_KEPT = 1000

/**
 * Removes what is delivered and older than `before`. What is undelivered or dead stays, and its fact with it.
 * @returns how many facts went.
 */
export function prune(
  db: Sqlite,
  lanes: Lanes,
  checkpoints: Checkpoints,
  before: number,
  now: number,
): number {
  const start = Number(checkpoints.get('prune_pos') ?? 0)
  const oldest = db
    .prepare<[number, number], { pos: number; at: number; seq: string | null }>(
      'SELECT pos, at, seq FROM facts WHERE pos > ? ORDER BY pos LIMIT ?',
    )
    .all(start, CHUNK)
  const young = oldest.findIndex(({ at }) => at >= before)
  const old = young === -1 ? oldest : oldest.slice(0, young)
  const owed = db
    .prepare<[number], number>('SELECT 1 FROM deliveries WHERE fact_pos = ? AND status <> 1')
    .pluck()
  const dropDeliveries = db.prepare<[number]>('DELETE FROM deliveries WHERE fact_pos = ?')
  const dropFact = db.prepare<[number]>('DELETE FROM facts WHERE pos = ?')
  let removed = 0
  let highest = seqOf(checkpoints.get('pruned_seq')) ?? 0n
  for (const { pos, seq } of old) {
    if (owed.get(pos) !== undefined) continue
    dropDeliveries.run(pos)
    dropFact.run(pos)
    removed++
    const number = seqOf(seq)
    if (number !== null && number > highest) highest = number
  }
  // Facts that stay because they are owed are looked at again when the walk starts over.
  const last = old.at(-1)
  checkpoints.set('prune_pos', old.length === CHUNK && last !== undefined ? String(last.pos) : '0')
  if (removed > 0) checkpoints.set('pruned_seq', String(highest))
  db.prepare<[number]>('DELETE FROM sightings WHERE at < ?').run(now - SIGHTING_KEPT)
  db.prepare<[number]>('DELETE FROM calls WHERE ended_at < ?').run(before)
  db.prepare<[number]>('DELETE FROM actions WHERE resolved_at < ?').run(before)
  dropGoneSessions(db, before)
  dropEmptyLanes(db, lanes)
  return removed
}

function dropGoneSessions(db: Sqlite, before: number): void {
  const gone = db
    .prepare<[number, number], string>('SELECT id FROM sessions WHERE deleted_at < ? LIMIT ?')
    .pluck()
    .all(before, CHUNK)
  for (const id of gone) {
    db.prepare<[string]>('DELETE FROM turns WHERE session_id = ?').run(id)
    db.prepare<[string]>('DELETE FROM actions WHERE session_id = ?').run(id)
    db.prepare<[string]>('DELETE FROM sessions WHERE id = ?').run(id)
    db.prepare<[string]>('DELETE FROM checkpoints WHERE name = ?').run(`items/${id}`)
  }
}

function dropEmptyLanes(db: Sqlite, lanes: Lanes): void {
  const empty = db
    .prepare<[number], number>('SELECT id FROM lanes WHERE pending = 0 LIMIT ?')
    .pluck()
    .all(CHUNK)
  const drop = db.prepare<[number]>('DELETE FROM lanes WHERE id = ? AND pending = 0')
  for (const id of empty) if (!lanes.isClaimed(id)) drop.run(id)
}

interface Owed {
  fact_pos: number
  handler: number
  lane: number
}

/** Makes dead deliveries (or one of any status but pending) pending again, through the lane that they were in. */
export function retry(db: Sqlite, lanes: Lanes, selection: RetrySelection): number {
  const conditions = ['d.status = 2']
  const values: unknown[] = []
  if (selection.id !== undefined) {
    const key = parseDeliveryId(selection.id)
    if (key === null) return 0
    conditions[0] = 'd.status <> 0'
    conditions.push('d.fact_pos = ?', 'd.handler = ?')
    values.push(key.pos, key.handlerNumber)
  }
  if (selection.handler !== undefined) {
    const handler = lanes.handlers().find(({ name }) => name === selection.handler)
    if (handler === undefined) return 0
    conditions.push('d.handler = ?')
    values.push(handler.number)
  }
  if (selection.since !== undefined) {
    conditions.push('f.at >= ?')
    values.push(selection.since)
  }
  const rows = db
    .prepare<unknown[], Owed>(
      `SELECT d.fact_pos, d.handler, d.lane FROM deliveries d JOIN facts f ON f.pos = d.fact_pos
       WHERE ${conditions.join(' AND ')}`,
    )
    .all(...values)
  if (selection.dryRun !== true) for (const row of rows) revive(db, row)
  return rows.length
}

/** The lane may have been removed since it was empty; a delivery always has its key again. */
function revive(db: Sqlite, { fact_pos, handler, lane }: Owed): void {
  const exists = db.prepare<[number], number>('SELECT 1 FROM lanes WHERE id = ?').pluck().get(lane)
  const id = exists === undefined ? openLane(db, handler, fact_pos) : lane
  db.prepare<[number, number, number]>(
    'UPDATE deliveries SET status = 0, attempts = 0, lane = ? WHERE fact_pos = ? AND handler = ?',
  ).run(id, fact_pos, handler)
  db.prepare<[number]>('UPDATE lanes SET pending = pending + 1, due_at = 0 WHERE id = ?').run(id)
}

function openLane(db: Sqlite, handler: number, pos: number): number {
  const key = db
    .prepare<[number], string>("SELECT coalesce(session_id, '') FROM facts WHERE pos = ?")
    .pluck()
    .get(pos)
  const id = db
    .prepare<[number, string], number>(
      `INSERT INTO lanes (handler, key, pending, due_at) VALUES (?, ?, 0, 0)
       ON CONFLICT (handler, key) DO UPDATE SET due_at = 0 RETURNING id`,
    )
    .pluck()
    .get(handler, key ?? '')
  if (id === undefined) throw new Error('the lane was not written')
  return id
}

/** Makes past facts pending for one handler, also those it never was to get. */
export function replay(
  db: Sqlite,
  number: number,
  wants: (type: string) => boolean,
  from: { pos: number } | { seq: string } | { at: number },
): number {
  const facts = db.prepare<[number, number, number], { pos: number; type: string; seq: string | null }>(
    'SELECT pos, type, seq FROM facts WHERE pos > ? AND at >= ? ORDER BY pos LIMIT ?',
  )
  const least = 'seq' in from ? seqOf(from.seq) : null
  const existing = db.prepare<[number, number], Owed & { status: number }>(
    'SELECT fact_pos, handler, lane, status FROM deliveries WHERE fact_pos = ? AND handler = ?',
  )
  const add = db.prepare<[number, number, number]>(
    `INSERT INTO deliveries (fact_pos, handler, lane, status, attempts, log) VALUES (?, ?, ?, 0, 0, '')`,
  )
  const grow = db.prepare<[number]>('UPDATE lanes SET pending = pending + 1, due_at = 0 WHERE id = ?')
  let count = 0
  let started = least === null
  let pos = 'pos' in from ? from.pos - 1 : 0
  for (;;) {
    const page = facts.all(pos, 'at' in from ? from.at : 0, CHUNK)
    for (const fact of page) {
      pos = fact.pos
      // State facts have no seq: they belong to the replay from where the stream's fact stands in the log.
      if (!started && fact.seq !== null && (seqOf(fact.seq) ?? -1n) >= (least ?? 0n)) started = true
      if (!started || !wants(fact.type)) continue
      const row = existing.get(fact.pos, number)
      if (row?.status === 0) continue
      if (row === undefined) {
        const lane = openLane(db, number, fact.pos)
        add.run(fact.pos, number, lane)
        grow.run(lane)
      } else revive(db, row)
      count++
    }
    if (page.length < CHUNK) return count
  }
}
