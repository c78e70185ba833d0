/** The highest seq whose fact was pruned: frames up to this seq that the service replays are ignored. */
export const PRUNED_SEQ = 'pruned_seq'

/** Our wall clock: when the first read of the service was complete. No channel could report anything before it. */
export const FIRST_LOOK = 'first_look'
