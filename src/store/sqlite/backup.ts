import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { messageOf, OperatorError } from '../../core/errors.ts'
import { inspectStore, type Inspection } from './inspect.ts'
import { recogniseStore } from './open.ts'

/** Pages copied before others get their turn, and progress is told. */
const STEP = 500

/**
 * Copies a database while a sidecar works with it (SQLite's online backup). The copy has its name only once it is whole
 * and was read through; what is cut short leaves nothing but a `.partial` file that the next try removes.
 * @throws {OperatorError} when there is nothing to copy, the target exists, or the copy is not sound.
 */
export async function backupStore(
  from: string,
  to: string,
  onProgress: (part: { done: number; total: number }) => void,
): Promise<Inspection> {
  const source = resolve(from)
  const target = resolve(to)
  const partial = `${target}.partial`
  if (!existsSync(source)) throw new OperatorError(`store: there is no ${source}.`)
  if (existsSync(target))
    throw new OperatorError(`store: ${target} is there already. Name a file that is not.`, 2)
  try {
    rmSync(partial, { force: true })
    // Only our user may read what agents and people wrote.
    closeSync(openSync(partial, 'wx', 0o600))
    await copy(source, partial, onProgress)
    const inspection = inspectStore(partial)
    if (inspection.problems.length > 0) {
      throw new OperatorError(
        `store: ${source} is damaged, and so would be its copy: ${inspection.problems.join('; ')}.`,
      )
    }
    sync(partial)
    renameSync(partial, target)
    sync(dirname(target))
    return { ...inspection, file: target }
  } catch (error) {
    rmSync(partial, { force: true })
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`store: ${source} could not be copied to ${target}: ${messageOf(error)}`)
  }
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
