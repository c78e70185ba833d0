import { statSync } from 'node:fs'
import type { StoreCounts } from '../../../core/counts.ts'
import type { Clock } from '../../../std/ports.ts'
import { keepCounts } from '../keeping.ts'
import type { Sqlite } from './open.ts'

/** A count that took less than this is used once, milliseconds. No delivery goes on while the counts are made. */
const SHORT = 20
/** Later than any stored time, milliseconds. */
const NEVER = Number.MAX_SAFE_INTEGER

/** Counts the contents of the store for metrics and status. No statement scans the whole log. */
export function createCounts(db: Sqlite, clock: Clock): () => Promise<StoreCounts> {
  const number = (sql: string) => db.prepare<[], number | null>(sql).pluck()
  const handlers = db.prepare<[], string>('SELECT name FROM handlers').pluck()
  const pending = db.prepare<[], { name: string; pending: number; oldest: number | null }>(
    `SELECT name, pending, (SELECT at FROM facts WHERE pos = min(ifnull(old, fresh), ifnull(fresh, old))) AS oldest FROM (
       SELECT l.handler, sum(l.pending) AS pending,
         min((SELECT min(d.fact_pos) FROM delivery_rows d WHERE d.lane = l.id AND d.status = 0)) AS old
       FROM lanes l WHERE l.pending > 0 GROUP BY l.handler
     ) JOIN handlers ON number = handler
     LEFT JOIN (SELECT handler AS of, min(fact_pos) AS fresh FROM fresh_deliveries GROUP BY handler) ON of = handler`,
  )
  const dead = db.prepare<[], { name: string; dead: number }>(
    `SELECT h.name, count(*) AS dead FROM delivery_rows d JOIN handlers h ON h.number = d.handler
     WHERE d.status = 2 GROUP BY h.name`,
  )
  const sessions = db.prepare<[], { status: string; count: number }>(
    'SELECT status, count FROM session_counts WHERE count > 0 ORDER BY status',
  )
  const actions = db.prepare<[], { type: string; count: number; oldest: number | null }>(
    `SELECT type, count(*) AS count, min(coalesce(created_at, opened_at)) AS oldest
     FROM actions WHERE resolved_at IS NULL GROUP BY type`,
  )
  const collecting = number(
    `SELECT min(t.created_at) FROM turns t JOIN sessions s ON s.id = t.session_id
     WHERE t.settled = 0 AND t.final = 1 AND s.deleted_at IS NULL
       AND iif(json_valid(t.raw), t.raw ->> 'artifacts', NULL) IS NOT NULL`,
  )
  const openCalls = number('SELECT count(*) FROM calls WHERE ended_at IS NULL')
  const dirty = number('SELECT count(*) FROM hints')
  // A hint without a `seen` time is a read that the sidecar scheduled itself: it does not count as unread.
  const unread = db.prepare<[], StoreCounts['unread']>(
    `SELECT count(reported_at) AS count, min(reported_at) AS oldest FROM (
       SELECT nullif(min(ifnull(seen_stream, ${NEVER}), ifnull(seen_webhook, ${NEVER}), ifnull(seen_poll, ${NEVER})),
         ${NEVER}) AS reported_at FROM hints)`,
  )
  const foreign = number("SELECT count(*) FROM session_owners WHERE owner = 'foreign'")
  const held = number('SELECT count(*) FROM held_frames')
  const pages = number('PRAGMA page_count')
  const pageSize = number('PRAGMA page_size')

  function deliveries(): StoreCounts['deliveries'] {
    const counts: StoreCounts['deliveries'] = {}
    for (const name of handlers.all()) counts[name] = { pending: 0, dead: 0, oldestPending: null }
    for (const { name, pending: count, oldest } of pending.all())
      counts[name] = { pending: count, dead: 0, oldestPending: oldest }
    for (const { name, dead: count } of dead.all()) {
      const entry = counts[name]
      if (entry !== undefined) entry.dead = count
    }
    return counts
  }

  const count = (): StoreCounts => ({
    sessions: Object.fromEntries(sessions.all().map(({ status, count }) => [status, count])),
    actions: Object.fromEntries(actions.all().map(({ type, count, oldest }) => [type, { count, oldest }])),
    deliveries: deliveries(),
    openCalls: openCalls.get() ?? 0,
    artifactsPendingSince: collecting.get() ?? null,
    dirty: dirty.get() ?? 0,
    unread: unread.get() ?? { count: 0, oldest: null },
    foreignSessions: foreign.get() ?? 0,
    heldFrames: held.get() ?? 0,
    bytes:
      (pages.get() ?? 0) * (pageSize.get() ?? 0) +
      (statSync(`${db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0),
  })

  return keepCounts(clock, count, { short: SHORT })
}
