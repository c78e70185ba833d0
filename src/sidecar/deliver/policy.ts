import { backoff } from '../../std/backoff.ts'
import type { PendingDelivery } from '../../core/delivery.ts'
import type { HandlerSpec } from '../../core/handler.ts'
import type { Random } from '../../std/ports.ts'
import type { Verdict } from './targets/verdict.ts'

/** What an attempt means for the deliveries of its batch. */
export type Decision =
  | { kind: 'delivered' }
  | { kind: 'dead' }
  /** `left` is tried again after `wait` milliseconds; `spent` has used up its attempts and is dead. */
  | {
      kind: 'retry'
      spent: readonly PendingDelivery[]
      left: readonly PendingDelivery[]
      wait: number
    }
  /** The handler is down. The attempt does not count, and nothing of it is stored. */
  | { kind: 'down' }
  /** The handler asked for a pause. The attempt does not count. */
  | { kind: 'paused' }

/**
 * A batch fails as a whole, but each of its facts has its own attempt count: a redelivered fact may be at its last attempt.
 */
export function decide(
  verdict: Exclude<Verdict, { kind: 'aborted' }>,
  batch: readonly PendingDelivery[],
  retry: HandlerSpec['retry'],
  random: Random,
): Decision {
  switch (verdict.kind) {
    case 'delivered':
      return DELIVERED
    case 'dead':
      return { kind: 'dead' }
    case 'unreachable':
      return { kind: 'down' }
    case 'gone':
      return { kind: 'paused' }
    case 'retry': {
      const spent = batch.filter(({ attempts }) => attempts + 1 >= retry.attempts)
      const left = batch.filter(({ attempts }) => attempts + 1 < retry.attempts)
      if (left.length === 0) return { kind: 'dead' }
      const most = Math.max(...left.map(({ attempts }) => attempts)) + 1
      return { kind: 'retry', spent, left, wait: backoff(retry, most, random, verdict.floor) }
    }
  }
}

const DELIVERED: Decision = { kind: 'delivered' }
