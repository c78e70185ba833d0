import type { Channel } from './fact.ts'

/**
 * News that something may have changed. A hint decides nothing: it makes the reconciler look.
 * `sessionId` null asks for a sweep over all sessions.
 */
export interface Hint {
  sessionId: string | null
  channel: Channel
  /** When the channel told us, milliseconds on our wall clock. */
  at: number
  /** What has to be read: the session alone says which actions wait; a turn's end is only in the turn. */
  scope: HintScope
  /** Milliseconds that the reading may wait so that hints that come together cost one reading. */
  delay: number
  /** The subject of the fact that the channel told us of (see Fact.subject), so that the fact can say who saw it first. */
  subject?: string
}

/**
 * `session`: the session, which says how it is and which actions wait. `artifacts`: turns alone, that are over and whose
 * artifacts are on the way. `turns`: both.
 */
export type HintScope = 'session' | 'artifacts' | 'turns'

/** What has to be read when both are wanted. */
export function joinScopes(a: HintScope, b: HintScope): HintScope {
  return a === b ? a : 'turns'
}
