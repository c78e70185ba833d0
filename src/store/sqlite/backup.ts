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
import { dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, messageOf, OperatorError } from '../../core/errors.ts'
import { inspectStore, type Inspection } from './inspect.ts'
import { recogniseStore } from './open.ts'

/** Pages copied before others get their turn, and progress is told. */
const STEP = 500

/**
 * Copies a database while a sidecar works with it (SQLite's online backup). The copy has its name only once it is whole
 * and was read through; what is killed leaves a folder beside it, `NAME.partial-…`, that may be removed.
 * @throws {OperatorError} when there is nothing to copy, the target exists, or the copy is not sound.
 */
export async function backupStore(
  from: string,
  to: string,
  onProgress: (part: { done: number; total: number }) => void,
): Promise<Inspection> {
  const source = resolve(from)
  const target = resolve(to)
  if (!existsSync(source)) throw new OperatorError(`store: there is no ${source}.`)
  if (existsSync(target)) throw isThere(target)
  let folder: string | null = null
  try {
    // A folder of its own, for our user alone: another backup to the same name is no business of ours.
    folder = mkdtempSync(`${target}.partial-`)
    const partial = join(folder, 'copy.db')
    closeSync(openSync(partial, 'wx', 0o600))
    await copy(source, partial, onProgress)
    const inspection = inspectStore(partial)
    if (inspection.problems.length > 0) {
      throw new OperatorError(
        `store: ${source} is damaged, and so would be its copy: ${inspection.problems.join('; ')}.`,
      )
    }
    sync(partial)
    giveName(partial, target)
    sync(dirname(target))
    return { ...inspection, file: target }
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`store: ${source} could not be copied to ${target}: ${messageOf(error)}`)
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true })
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

function isThere(target: string): OperatorError {
  return new OperatorError(`store: ${target} is there already. Name a file that is not.`, 2)
}

async function copy(
  source: string,
  partial: string,
  onProgress: (part: { done: number; total: number }) => void,
): Promise<void> {
  const db = new Database(source, { readonly: true })
  try {
    recogniseStore(db, source)
    // Held while it is read: a backup of what goes on changing starts over with every commit of somebody else.
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
  // A copy of a database in WAL mode is one too: this leaves a single file.
  const made = new Database(partial)
  made.pragma('journal_mode = DELETE')
  made.close()
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
