import { existsSync, linkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { messageOf, OperatorError } from '../../../std/errors.ts'
import { createFolder, PRIVATE } from '../../../std/folder.ts'
import { inspectSound } from './backup.ts'
import { copyDatabase, writeCopy, type Progress } from './copy.ts'
import type { Inspection } from './inspect.ts'
import { assertOneName, lock } from './lock.ts'
import { assertOwnLog, hasOwnLog } from './wal.ts'

export interface Restored extends Inspection {
  /** Where it was read from. */
  from: string
  /** The new path of the former database; null: there was none. */
  kept: string | null
  /** The new path of the WAL of a database that was deleted; null: there was none, or it is kept with its database. */
  keptLog: string | null
}

type Kept = Pick<Restored, 'kept' | 'keptLog'>

/**
 * Replaces a store with a copy. The former database is kept beside it with its WAL. The copy gets its name only after
 * it is complete, checked and on disk.
 * @throws {OperatorError} when a sidecar uses the store, or the copy is not sound; then nothing was changed.
 */
export async function restoreStore(
  from: string,
  to: string,
  options: { now: number; onProgress: Progress },
): Promise<Restored> {
  const source = resolve(from)
  if (!existsSync(source)) throw new OperatorError(`store: ${source} does not exist`, 1, 'correct the path')
  const target = existsSync(to) ? realpathSync(to) : resolve(to)
  if (realpathSync(source) === target)
    throw new OperatorError(`store: ${source} is the store itself. Name the copy to restore.`, 2)
  assertOwnLog(source)
  createFolder(dirname(target), PRIVATE)
  const unlock = lock(target)
  try {
    // The check opens the file with SQLite, which would write the WAL of another database into it. So it runs only
    // beside a WAL that belongs to the file.
    if (existsSync(target) && hasOwnLog(target)) assertOneName(target)
    let kept: Kept = { kept: null, keptLog: null }
    const inspection = await writeCopy(
      target,
      async (partial) => {
        await copyDatabase(source, partial, options.onProgress)
        return inspectSound(partial, source)
      },
      (partial) => {
        kept = exchange(partial, target, options.now)
      },
    )
    return { ...inspection, file: target, from: source, ...kept }
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(
      `store: ${source} could not be restored to ${target}: ${messageOf(error)}`,
      1,
      'name a copy that "session-sidecar store backup" made',
    )
  } finally {
    unlock()
  }
}

/**
 * The former database is moved with its WAL, under names by which SQLite finds the two together. After a crash at any
 * point, the former store is in its place, or the new one is beside the WAL of the former, which is refused (wal.ts).
 * @returns where the former one is.
 */
function exchange(partial: string, target: string, now: number): Kept {
  const aside = `${target}.before-restore-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`
  const sides = ['', '-wal'].filter((end) => existsSync(target + end))
  if (sides.includes('')) keepName(target, aside)
  renameSync(partial, target)
  if (sides.includes('-wal')) renameSync(`${target}-wal`, `${aside}-wal`)
  rmSync(`${target}-shm`, { force: true })
  if (sides.includes('')) return { kept: aside, keptLog: null }
  return { kept: null, keptLog: sides.includes('-wal') ? `${aside}-wal` : null }
}

/**
 * Makes a hard link, so that there is a store at every moment. If the file system has no hard links, the file is
 * renamed.
 */
function keepName(target: string, aside: string): void {
  try {
    linkSync(target, aside)
  } catch {
    renameSync(target, aside)
  }
}
