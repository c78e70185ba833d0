import type { Channel } from './fact.ts'

/**
 * A report that something may have changed. A hint decides nothing: it makes the reconciler read.
 * `sessionId` null requests a sweep over all sessions.
 */
export interface Hint {
  sessionId: string | null
  channel: Channel
  /** When the channel reported it, milliseconds on our wall clock. */
  at: number
  /** The resources to read: only the session lists its open actions; only the turn shows its end. */
  scope: HintScope
  /** Milliseconds that the read may wait, so that several hints cost one read. */
  delay: number
  /**
   * The subject of the fact that the channel reported (see Fact.subject), so that the fact can record which channel
   * was first.
   */
  subject?: string
}

/**
 * `session`: the session, for its status and waiting actions. `artifacts`: only ended turns with
 * pending artifacts. `turns`: both.
 */
export type HintScope = 'session' | 'artifacts' | 'turns'

/** The resources to read when both are requested. */
export function joinScopes(a: HintScope, b: HintScope): HintScope {
  return a === b ? a : 'turns'
}
