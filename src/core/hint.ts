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

export type HintScope = 'session' | 'turns'
