import { randomBytes } from 'node:crypto'
import type { Random } from '../core/ports.ts'

/** Chance as the machine has it. `next` is for jitter only; what must not be guessed comes from `hex`. */
export function systemRandom(): Random {
  return {
    next: () => Math.random(),
    hex: (bytes) => randomBytes(bytes).toString('hex'),
  }
}
