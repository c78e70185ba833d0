import { randomFillSync } from 'node:crypto'
import type { Random } from '../std/ports.ts'

/** Bytes of one system call, which costs as much for a few bytes as for a page. */
const POOL = 4096

/**
 * Randomness of the machine. `next` is for jitter only; values that must not be guessed come from
 * `hex`.
 */
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
