import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf, OperatorError } from '../../../std/errors.ts'
import { copyDatabase, isThere, writeCopy, type Progress } from './copy.ts'
import { inspectStore, type Inspection } from './inspect.ts'
import { assertOwnLog } from './wal.ts'

/**
 * Copies a database while a sidecar works with it. The copy gets its name only after it is complete and was checked.
 * @throws {OperatorError} when there is nothing to copy, the target exists, or the copy is not sound.
 */
export async function backupStore(from: string, to: string, onProgress: Progress): Promise<Inspection> {
  const source = resolve(from)
  const target = resolve(to)
  if (!existsSync(source)) throw new OperatorError(`store: ${source} does not exist.`)
  if (existsSync(target)) throw isThere(target)
  try {
    assertOwnLog(source)
    const inspection = await writeCopy(target, async (partial) => {
      await copyDatabase(source, partial, onProgress)
      return inspectSound(partial, source)
    })
    return { ...inspection, file: target }
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`store: ${source} could not be copied to ${target}: ${messageOf(error)}`)
  }
}

/** @throws {OperatorError} when the copy of `source` is not sound. */
export function inspectSound(partial: string, source: string): Inspection {
  const inspection = inspectStore(partial)
  if (inspection.problems.length === 0) return inspection
  throw new OperatorError(
    `store: ${source} is damaged, so its copy would be damaged too: ${inspection.problems.join('; ')}.`,
  )
}
