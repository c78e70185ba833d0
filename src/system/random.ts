import { randomFillSync } from 'node:crypto'
import type { Random } from '../std/ports.ts'

/** Asking the system for a few bytes costs as much as for a page of them. */
const POOL = 4096

/** Chance as the machine has it. `next` is for jitter only; what must not be guessed comes from `hex`. */
export function systemRandom(): Random {
  const pool = Buffer.alloc(POOL)
  let used = POOL
  return {
    next: () => Math.random(),
    hex(bytes) {
      if (bytes > POOL) return randomFillSync(Buffer.alloc(bytes)).toString('hex')
      if (used + bytes > POOL) {
        randomFillSync(pool)
        used = 0
      }
      used += bytes
      return pool.toString('hex', used - bytes, used)
    },
  }
}
