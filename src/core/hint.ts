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
  /** What exactly the channel told us of, so that the fact that comes of it can say who saw it first. */
  sighting?: Sighting
}

/** A channel's claim that a fact of `type` about `key` (a turn, a call, a session) exists. */
export interface Sighting {
  type: string
  key: string
}
