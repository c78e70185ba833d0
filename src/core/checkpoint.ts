/** The highest seq whose fact was pruned: frames up to this seq that the service replays are ignored. */
export const PRUNED_SEQ = 'pruned_seq'

/** Service clock: since when items, not the stream, are the source of the transcript; empty: not known yet. */
export const ITEMS_SINCE = 'items_since'

/**
 * Service clock: when the process started that was the first to list the sessions. The first look takes older sessions at
 * rest as known, also when a later process completes it.
 */
export const FIRST_START = 'first_start'

/** Our wall clock: when the first read of the service was complete. No channel could report anything before it. */
export const FIRST_LOOK = 'first_look'
