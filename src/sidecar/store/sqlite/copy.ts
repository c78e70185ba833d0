import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, OperatorError } from '../../../std/errors.ts'
import { OWNER_SCHEMA } from './owner-page.ts'
import { recogniseStore, type Sqlite } from './open.ts'
import { versionOf } from './schema.ts'

/** Pages copied before others get their turn, and progress is reported. */
const STEP = 500

export type Progress = (part: { done: number; total: number }) => void

/**
 * Has `fill` write a new file beside `target`, and gives it that name once it is whole and on disk. What is killed leaves a
 * folder `NAME.partial-…`, which may be removed. `place`: how it gets there, in place of giving a name that is free.
 * @throws {OperatorError} when something is at `target`.
 */
export async function writeCopy<T>(
  target: string,
  fill: (partial: string) => Promise<T>,
  place: (partial: string) => void | Promise<void> = (partial) => giveName(partial, target),
): Promise<T> {
  // A folder of its own, for our user alone: another copy to the same name does not meet it.
  const folder = mkdtempSync(`${target}.partial-`)
  try {
    const partial = join(folder, 'copy.db')
    closeSync(openSync(partial, 'wx', 0o600))
    const result = await fill(partial)
    sync(partial)
    await place(partial)
    sync(dirname(target))
    return result
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What an open database holds, also one whose file was deleted; `closeStore` is called before the copy has its name. */
export async function saveCopy(db: Sqlite, target: string, closeStore: () => Promise<void>): Promise<void> {
  await writeCopy(
    target,
    async (partial) => {
      await db.backup(partial, { progress: () => STEP })
      leaveOneFile(partial, () => undefined)
    },
    async (partial) => {
      await closeStore()
      giveName(partial, target)
    },
  )
}

/**
 * Copies a database that may be in use (SQLite's online backup). The copy has an owner of its own: a log that was written
 * for the original never fits it.
 */
export async function copyDatabase(source: string, partial: string, onProgress: Progress): Promise<void> {
  const db = new Database(source, { readonly: true })
  try {
    recogniseStore(db, source)
    // Held while it is read: a backup of what goes on changing starts over with every commit of another process.
    db.exec('BEGIN; SELECT 1 FROM sqlite_schema')
    await db.backup(partial, {
      progress: ({ totalPages, remainingPages }) => {
        onProgress({ done: totalPages - remainingPages, total: totalPages })
        return STEP
      },
    })
  } finally {
    db.close()
  }
  leaveOneFile(partial, (copy) => {
    if (versionOf(copy) < OWNER_SCHEMA) return
    copy.exec("UPDATE owner SET owner = lower(hex(randomblob(16))), previous = ''")
  })
}

/** A copy of a database in WAL mode is in WAL mode, too: this leaves a single file. */
function leaveOneFile(partial: string, change: (copy: Sqlite) => void): void {
  const copy = new Database(partial)
  try {
    copy.pragma('journal_mode = DELETE')
    change(copy)
  } finally {
    copy.close()
  }
}

/** A second name takes the place of nothing; where a file system knows no second names, the first is changed. */
function giveName(partial: string, target: string): void {
  try {
    linkSync(partial, target)
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || existsSync(target)) throw isThere(target)
    renameSync(partial, target)
  }
}

export function isThere(target: string): OperatorError {
  return new OperatorError(`store: ${target} exists already. Name a new file.`, 2)
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
