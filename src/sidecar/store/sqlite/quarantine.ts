import type { Settings } from '../../../core/store.ts'
import type { Sqlite } from './open.ts'

/** Entries that are kept; the oldest go first. */
const KEPT = 1000

/** Bytes that could not be read, for a person to look at. */
export function createQuarantine(
  db: Sqlite,
  write: (run: () => void) => Promise<void>,
): Settings['quarantine'] {
  return (entry) =>
    write(() => {
      const { lastInsertRowid } = db
        .prepare('INSERT INTO quarantine (at, source, reason, bytes) VALUES (?, ?, ?, ?)')
        .run(entry.at, entry.source, entry.reason, entry.bytes)
      db.prepare('DELETE FROM quarantine WHERE id <= ?').run(Number(lastInsertRowid) - KEPT)
    })
}
