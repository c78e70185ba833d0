import type { Random } from './ports.ts'

export interface Backoff {
  /** Milliseconds. */
  base: number
  /** Milliseconds. */
  max: number
}

/**
 * Exponential back-off with full jitter: anything between 0 and `base * 2^(attempt-1)`, at most `max`.
 * `attempt` counts from 1. Never less than `floor` (a `Retry-After`, say), which may exceed `max`.
 */
export function backoff(policy: Backoff, attempt: number, random: Random, floor = 0): number {
  const ceiling = Math.min(policy.max, policy.base * 2 ** Math.min(attempt - 1, 40))
  return Math.max(floor, Math.round(ceiling * random.next()))
}
