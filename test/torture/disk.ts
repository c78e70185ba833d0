import { execFile, execFileSync } from 'node:child_process'
import { closeSync, cpSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Room of a small file system, MiB. */
const ROOM = 64
const BALLAST = 'ballast'

/** Where the store is, and a way to let its disk run full. */
export interface Disk extends AsyncDisposable {
  readonly kind: 'tmpfs' | 'limit'
  /** The folder of the store. */
  readonly folder: string
  /** @returns false when it cannot be done here. */
  fill(pid: number): Promise<boolean>
  free(pid: number | null): Promise<void>
}

/** A real file system that is too small where we may mount one (as root), else a limit on the size of files. */
export async function openDisk(folder: string, mayMount: boolean): Promise<Disk> {
  const store = path.join(folder, 'store')
  mkdirSync(store)
  if (mayMount) {
    try {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${ROOM}m`, 'torture', store])
      return smallDisk(store)
    } catch {
      // Not root, or in a container without the right: the limit does.
    }
  }
  return limitedDisk(store)
}

/** Writes fail with ENOSPC. */
function smallDisk(folder: string): Disk {
  const ballast = path.join(folder, BALLAST)
  const free = (): void => rmSync(ballast, { force: true })
  // Nothing stays mounted when the campaign is interrupted.
  const leave = (): void => void execFileSync('umount', ['--lazy', folder])
  process.once('exit', leave)
  return {
    kind: 'tmpfs',
    folder,
    async fill() {
      const file = openSync(ballast, 'w')
      const block = Buffer.alloc(1024 * 1024)
      try {
        for (let size = block.length; size > 0; size = Math.floor(size / 2)) {
          while (fits(file, block.subarray(0, size))) continue
        }
      } finally {
        closeSync(file)
      }
      return true
    },
    async free() {
      free()
    },
    async [Symbol.asyncDispose]() {
      free()
      // What was in it stays to be looked at.
      const kept = `${folder}-kept`
      cpSync(folder, kept, { recursive: true })
      await run('umount', [folder])
      process.off('exit', leave)
      cpSync(kept, folder, { recursive: true })
      rmSync(kept, { recursive: true })
    },
  }
}

function fits(file: number, block: Buffer): boolean {
  try {
    return writeSync(file, block) === block.length
  } catch {
    return false
  }
}

/** Writes beyond the first pages of any file fail with EFBIG: Node leaves the signal that comes with it aside. */
function limitedDisk(folder: string): Disk {
  const limit = async (pid: number, bytes: string): Promise<boolean> => {
    try {
      await run('prlimit', ['--pid', String(pid), `--fsize=${bytes}`])
      return true
    } catch {
      return false
    }
  }
  return {
    kind: 'limit',
    folder,
    fill: (pid) => limit(pid, '8192:unlimited'),
    free: async (pid) => {
      if (pid !== null) await limit(pid, 'unlimited:unlimited')
    },
    async [Symbol.asyncDispose]() {},
  }
}
