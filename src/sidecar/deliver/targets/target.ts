import type { StoredFact } from '../../../core/fact.ts'
import type { SessionSummary } from '../../../core/resource.ts'
import type { Attributes } from '../../../core/trace.ts'
import type { Verdict } from './verdict.ts'

/** A fact on its way to a handler. */
export interface Outgoing {
  fact: StoredFact
  /** From 1. */
  attempt: number
  session: SessionSummary | null
  /** It is a test fact, and is marked as one. */
  test?: boolean
}

/**
 * How a handler is reached: over HTTP or in this process. A burst makes thousands of attempts a second, so an attempt ends
 * with a call, not with a promise.
 */
export interface Target {
  /** Takes several facts in one attempt. */
  readonly batches: boolean
  /** One attempt for `batch`, which is in order and never empty. `ended` is called once, after `send` has returned. Never throws. */
  send(batch: readonly Outgoing[], ended: (verdict: Verdict) => void): void
  /** The sidecar stops: every attempt under way, and every later one, ends as `aborted`. */
  abort(): void
}

/** The attributes of the span of a callback. */
export function attributesOf(handler: string, { fact, attempt }: Outgoing): Attributes {
  return {
    'session_sidecar.handler': handler,
    'session_sidecar.event.id': fact.id,
    'session_sidecar.event.type': fact.type,
    'session_sidecar.attempt': attempt,
    ...(fact.sessionId === null ? {} : { 'session_sidecar.session.id': fact.sessionId }),
  }
}
