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

/** Pages that are copied before other work runs and progress is reported. */
const STEP = 500

export type Progress = (part: { done: number; total: number }) => void

/**
 * Lets `fill` write a new file beside `target`, and gives it that name once it is complete and on disk. If the process
 * is killed, a folder `NAME.partial-…` remains, which may be removed. `place`: gives the file its name in another way,
 * for a target that need not be free.
 * @throws {OperatorError} when something is at `target`.
 */
export async function writeCopy<T>(
  target: string,
  fill: (partial: string) => Promise<T>,
  place: (partial: string) => void | Promise<void> = (partial) => giveName(partial, target),
): Promise<T> {
  // A separate folder, for our user alone, so that two copies to one target do not write the same file.
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

/**
 * The content of an open database, also of one whose file was deleted; `closeStore` is called before the copy gets its name.
 */
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
 * Copies a database that may be in use (SQLite's online backup). The copy has an owner of its own: a WAL that was
 * written for the original never fits it.
 */
export async function copyDatabase(source: string, partial: string, onProgress: Progress): Promise<void> {
  const db = new Database(source, { readonly: true })
  try {
    recogniseStore(db, source)
    // A read transaction fixes the state that is copied: without it, the backup would start over at every commit of
    // another process.
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

/** A hard link never replaces a file at `target`. If the file system has no hard links, the file is renamed. */
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
