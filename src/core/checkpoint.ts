/** The checkpoint with the id of the last item of a session that is in the log. */
export function lastItemOf(sessionId: string): string {
  return `items/${sessionId}`
}

/** The highest seq whose fact was pruned: frames up to this seq that the service replays are ignored. */
export const PRUNED_SEQ = 'pruned_seq'

/**
 * Service clock: from this time on, the transcript is read from items, not from the stream; empty: the time is not
 * known yet.
 */
export const ITEMS_SINCE = 'items_since'

/**
 * Service clock: the start of the first process that listed the sessions. The first read of all sessions stores those
 * that were idle before this time without facts, even if a later process completes it.
 */
export const FIRST_START = 'first_start'

/**
 * Our wall clock: when the first read of all sessions was complete. No channel can have reported a change before it.
 */
export const FIRST_LOOK = 'first_look'
