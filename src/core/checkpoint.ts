/** The highest seq whose fact was pruned: frames up to there that the service replays are ignored. */
export const PRUNED_SEQ = 'pruned_seq'

/** When the first read of the service was complete, our wall clock: before that no channel could report anything. */
export const FIRST_LOOK = 'first_look'
