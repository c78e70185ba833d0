/** The highest seq whose fact was removed: what a service shows up to there again is no news. */
export const PRUNED_SEQ = 'pruned_seq'

/** When the first look at the service was through, our wall clock: until then no channel could tell of anything. */
export const FIRST_LOOK = 'first_look'
