import { statfs } from 'node:fs/promises'
import { messageOf } from '../../std/errors.ts'
import { fail, ok, warn, type Finding } from './finding.ts'

const MIB = 1024 * 1024
/** With less free space than this, commits soon fail. Bytes. */
const LEAST = 64 * MIB
/** With less free space than this, a backlog of a day may not fit. Bytes. */
const LITTLE = 1024 * MIB

/** Free space on the disk of `folder`. */
export async function checkDisk(folder: string): Promise<Finding> {
  const fix = 'free disk space, or set store.url to another disk'
  try {
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const text = `${sizeOf(free)} free at ${folder}`
    if (free < LEAST) return fail('disk', text, fix)
    return free < LITTLE
      ? warn('disk', `${text}: little, if a handler is down for long`, fix)
      : ok('disk', text)
  } catch (error) {
    return warn('disk', `${folder} cannot be measured: ${messageOf(error)}`, fix)
  }
}

function sizeOf(bytes: number): string {
  return bytes < LITTLE ? `${Math.floor(bytes / MIB)} MiB` : `${(bytes / LITTLE).toFixed(1)} GiB`
}
