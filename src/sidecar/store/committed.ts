import type { Committed } from '../../core/store.ts'

/** What a commit reports before anything of it is written. */
export function nothingCommitted(): Committed {
  return { facts: [], lanes: [], stale: [], refused: [], sightings: [], hinted: false, newCalls: [] }
}
