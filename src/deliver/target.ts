import type { StoredFact } from '../core/fact.ts'
import type { SessionBrief } from '../core/resource.ts'
import type { Verdict } from './verdict.ts'

/** A fact on its way to a handler. */
export interface Outgoing {
  fact: StoredFact
  /** From 1. */
  attempt: number
  session: SessionBrief | null
  /** It is made up, and says so. */
  test?: boolean
}

/** Where a handler's callbacks go: over HTTP, into this process, or later to some other sink. */
export interface Target {
  /** Takes several facts in one attempt. */
  readonly batches: boolean
  /** One attempt for `batch`, which is in order and never empty. `signal`: we are stopping. Never throws. */
  send(batch: readonly Outgoing[], signal: AbortSignal): Promise<Verdict>
}
