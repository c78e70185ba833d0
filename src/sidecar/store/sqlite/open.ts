import { existsSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import Database from 'better-sqlite3'
import { OperatorError } from '../../../std/errors.ts'
import { assertOneName, createPrivately, lock } from './lock.ts'
import { damaged, explainOpening } from './refusal.ts'
import { assertOwnLog } from './wal.ts'
import {
  alteredDefinitions,
  APPLICATION_ID,
  COPYING_ID,
  knownMigrations,
  migrate,
  versionOf,
} from './schema.ts'

/** Up to this size the whole file is checked at each start; a larger one would make a start take seconds. */
const CHECKED_AT_START = 64 * 1024 * 1024

/**
 * Statements of the hot path write `+?` in a limit, and in a comparison beside an ORDER BY. The plan may depend on a
 * bare parameter there, so SQLite would prepare the statement again at each execution, at ten times the cost.
 */
export type Sqlite = Database.Database

export interface OpenStore {
  db: Sqlite
  /** The file itself, where `path` is a link to it; null: it is in memory. */
  file: string | null
  /** Lets the next process in. */
  unlock(): void
}

/**
 * Opens or creates the database and brings it to the newest version.
 * @throws {OperatorError} when another process uses it, or when it is damaged, foreign or newer than this program.
 */
export function openDatabase(path: string): OpenStore {
  if (path === ':memory:') {
    const db = new Database(path)
    configure(db)
    migrate(db)
    return { db, file: null, unlock: () => undefined }
  }
  if (!existsSync(path)) assertOwnLog(resolve(path))
  createPrivately(resolve(path))
  // A link to a store is that store: its lock lies beside the file itself.
  const file = realpathSync(path)
  const unlock = lock(file)
  try {
    assertOwnLog(file)
    // A process that has the file open under this name has created the index (-shm) beside it. Without one, it may be
    // open under another name.
    if (statSync(file).nlink > 1 || !existsSync(`${file}-shm`)) assertOneName(file)
    const db = new Database(file)
    try {
      recogniseStore(db, file)
      checkWhole(db, file)
      configure(db)
      migrate(db)
      // A write that waits for another program must not block the event loop: the committer retries (committer.ts).
      db.pragma('busy_timeout = 10')
      return { db, file, unlock }
    } catch (error) {
      db.close()
      throw error
    }
  } catch (error) {
    unlock()
    throw explainOpening(error, file)
  }
}

/** @throws {OperatorError} when a database belongs to another program, or to a newer version of this one. */
export function recogniseStore(db: Sqlite, file: string): void {
  const tables = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get()
  const id = db.pragma('application_id', { simple: true })
  if (id === COPYING_ID)
    throw new OperatorError(
      `store: ${file} is a copy that is not complete`,
      1,
      'run the same "store copy" again, which continues; or remove the file',
    )
  if (tables !== 0 && id !== APPLICATION_ID) {
    throw new OperatorError(
      `store: ${file} is a database of another program. It was not changed. Set store.url to another file.`,
    )
  }
  const version = versionOf(db)
  const known = knownMigrations().length
  if (version > known) {
    throw new OperatorError(
      `store: ${file} was written by a newer version (schema ${version}, this program knows ${known}). ` +
        'It was not changed. Run the newer version.',
    )
  }
}

function checkWhole(db: Sqlite, file: string): void {
  const [altered] = alteredDefinitions(db)
  if (altered !== undefined) throw damaged(file, `the definition of ${altered} has changed`)
  if (statSync(file).size > CHECKED_AT_START) return
  const verdict = db.prepare('PRAGMA quick_check(1)').pluck().get()
  if (verdict !== 'ok') throw damaged(file, String(verdict))
}

function configure(db: Sqlite): void {
  db.pragma('journal_mode = WAL')
  // The library is built with NORMAL as the default for WAL, which may lose committed rows when power fails.
  db.pragma('synchronous = FULL')
  if (db.pragma('synchronous', { simple: true }) !== 2)
    throw new OperatorError('store: synchronous=FULL was refused')
  db.pragma('busy_timeout = 5000')
  db.pragma('cache_size = -8000')
  // A commit that reaches this size also makes the checkpoint: 2,000 pages (8 MiB) keep that rare and the WAL small.
  db.pragma('wal_autocheckpoint = 2000')
  db.pragma('journal_size_limit = 67108864')
}

/** @returns the file mode, in octal, if every user of this machine may read the store; otherwise null. */
export function openToAll(file: string): string | null {
  const { mode } = statSync(file)
  return process.getuid !== undefined && (mode & 0o007) !== 0 ? (mode & 0o777).toString(8) : null
}
