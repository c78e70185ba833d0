import type { StoredFact } from '../../../core/fact.ts'
import type { SessionSummary } from '../../../core/resource.ts'
import type { Verdict } from './verdict.ts'

/** A fact on its way to a handler. */
export interface Outgoing {
  fact: StoredFact
  /** From 1. */
  attempt: number
  session: SessionSummary | null
  /** It is made up, and says so. */
  test?: boolean
}

/**
 * How a handler is reached: over HTTP or in this process. A burst makes thousands of attempts a second, so the end of one
 * is a call and not a promise.
 */
export interface Target {
  /** Takes several facts in one attempt. */
  readonly batches: boolean
  /** One attempt for `batch`, which is in order and never empty. `ended` is called once, after `send` has returned. Never throws. */
  send(batch: readonly Outgoing[], ended: (verdict: Verdict) => void): void
  /** We stop: every attempt under way, and every later one, ends as `aborted`. */
  abort(): void
}
