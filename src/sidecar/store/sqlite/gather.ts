import type { Sqlite } from './open.ts'

/**
 * Each pending fact of an unordered handler has a lane of its own. Once the handler is ordered its facts go through the lanes of
 * their sessions, beside which they would come in any order.
 */
export function gatherLanes(db: Sqlite, handler: number): void {
  // Ids of facts begin so, and the key of a session's lane is its own id.
  const old = db
    .prepare<[number], number>(
      `SELECT id FROM lanes WHERE handler = ? AND key >= 'evt_' AND key < 'evt\`'
         AND EXISTS (SELECT 1 FROM facts WHERE facts.id = lanes.key)`,
    )
    .pluck()
    .all(handler)
  if (old.length === 0) return
  const ids = JSON.stringify(old)
  // A wait that a fact was told to keep is kept by its session.
  db.prepare<[string]>(
    `INSERT INTO lanes (handler, key, pending, due_at)
       SELECT l.handler, coalesce(f.session_id, ''), count(*), max(l.due_at) FROM lanes l
       JOIN deliveries d ON d.lane = l.id AND d.status = 0 JOIN facts f ON f.pos = d.fact_pos
       WHERE l.id IN (SELECT value FROM json_each(?)) GROUP BY 1, 2
     ON CONFLICT (handler, key) DO UPDATE SET pending = pending + excluded.pending,
       due_at = max(due_at, excluded.due_at)`,
  ).run(ids)
  db.prepare<[string]>(
    `UPDATE deliveries SET lane = (
       SELECT l.id FROM lanes l JOIN facts f ON f.pos = deliveries.fact_pos
       WHERE l.handler = deliveries.handler AND l.key = coalesce(f.session_id, ''))
     WHERE status = 0 AND lane IN (SELECT value FROM json_each(?))`,
  ).run(ids)
  db.prepare<[string]>('DELETE FROM lanes WHERE id IN (SELECT value FROM json_each(?))').run(ids)
}
