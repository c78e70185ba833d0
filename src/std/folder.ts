import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder, and those above it that are missing, one after the other. Node's `recursive` option would never
 * return below /proc, where no folder can be created.
 */
export function createFolder(folder: string, mode = 0o777): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process may make it as well.
    if (!existsSync(folder)) throw error
  }
}

/** The mode of a folder that only our user may read. */
export const PRIVATE = 0o700
