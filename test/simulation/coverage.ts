import { EVERY, type Aim } from './faults.ts'
import { KNOWN_SITES, REPLICA_SITES, SCOPE_SITES, UPKEEP_SITES } from './known-sites.ts'
import type { Tally } from './tally.ts'

/** Places that have no after, or no before, of their own. */
const ONE_SIDED = /^weather after$/
/** Places that no seed can be counted on to reach. */
const RARE = /^(http read turn|store\.(forgetSubscription|quarantine|activeSessions)) /

const SITES = [...KNOWN_SITES, ...UPKEEP_SITES, ...SCOPE_SITES]

/** Places at which nothing crashed yet. */
function missing({ crashed }: Tally): string[] {
  return SITES.flatMap((site) => [`${site} before`, `${site} after`]).filter(
    (place) => !ONE_SIDED.test(place) && !crashed.has(place),
  )
}

/** A crash at each place that had none, and each fault that did not occur. */
export function untriedOf(tally: Tally): Aim[] {
  return [
    ...missing(tally).map((place): Aim => ({ fault: 'crash', place })),
    ...EVERY.filter((fault) => !tally.faults.has(fault)).map((fault): Aim => ({ fault, place: null })),
  ]
}

/** True once it struck. */
export function isTried(tally: Tally, { fault, place }: Aim): boolean {
  return place === null ? tally.faults.has(fault) : tally.crashed.has(place)
}

/** What was not tried, in words: every place must crash before and after, every fault be seen. */
export function gaps(tally: Tally): string[] {
  const known = new Set([...SITES, ...REPLICA_SITES])
  const unknown = [...tally.passed.keys()].filter(
    (place) =>
      /^(store|http|clock)[. ]/.test(place) &&
      !RARE.test(place) &&
      !known.has(place.replace(/ (before|after)$/, '')),
  )
  return [
    ...untriedOf(tally).map(({ fault, place }) => (place === null ? `never ${fault}` : `no crash ${place}`)),
    ...unknown.map((place) => `a place that known-sites.ts does not name: ${place}`),
  ]
}
