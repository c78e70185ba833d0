import type { Clock } from '../../../std/ports.ts'
import type { Settings, SubscriptionRecord } from '../../../core/store.ts'
import type { Lanes } from './lanes.ts'
import type { Checkpoints } from './log.ts'
import type { Sqlite } from './open.ts'

/** The most entries in quarantine; the oldest are removed first. */
export const KEPT = 1000

export function createSettings(parts: {
  db: Sqlite
  clock: Clock
  checkpoints: Checkpoints
  lanes: Lanes
  write: <T>(run: () => T) => Promise<T>
  ask: <T>(run: () => T) => Promise<T>
}): Settings {
  const { db, clock, checkpoints, lanes, write, ask } = parts
  const pause = db.prepare<[number | null, string | null, string]>(
    'UPDATE handlers SET paused_at = ?, pause_reason = ? WHERE name = ?',
  )
  const list = db.prepare<[], SubscriptionRecord>(
    'SELECT id, url, secret, created_at AS createdAt, retired_at AS retiredAt FROM subscriptions ORDER BY created_at DESC',
  )
  const save = db.prepare<[string, string, string, number, number | null]>(
    `INSERT INTO subscriptions (id, url, secret, created_at, retired_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET retired_at = excluded.retired_at`,
  )
  const forget = db.prepare<[string]>('DELETE FROM subscriptions WHERE id = ?')
  const keep = db.prepare<[number, string, string, string]>(
    'INSERT INTO quarantine (at, source, reason, bytes) VALUES (?, ?, ?, ?)',
  )
  const dropOldest = db.prepare<[number]>('DELETE FROM quarantine WHERE id <= ?')

  return {
    checkpoint: (name) => ask(() => checkpoints.get(name)),
    setCheckpoint: (name, value) => write(() => checkpoints.set(name, value)),
    registerHandlers: (handlers) => write(() => lanes.register(handlers)),
    pauseHandler: (name, reason) => {
      const since = reason === null ? null : clock.now()
      return write(() => {
        pause.run(since, reason, name)
        return since
      })
    },
    subscriptions: () => ask(() => list.all()),
    saveSubscription: ({ id, url, secret, createdAt, retiredAt }) =>
      write(() => void save.run(id, url, secret, createdAt, retiredAt)),
    forgetSubscription: (id) => write(() => void forget.run(id)),
    quarantine: ({ at, source, reason, bytes }) =>
      write(() => {
        const { lastInsertRowid } = keep.run(at, source, reason, bytes)
        dropOldest.run(Number(lastInsertRowid) - KEPT)
      }),
  }
}
