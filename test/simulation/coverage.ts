import { EVERY } from './faults.ts'
import { KNOWN_SITES, REPLICA_SITES, SCOPE_SITES, UPKEEP_SITES } from './known-sites.ts'
import type { Tally } from './tally.ts'

/** Places that have no after, or no before, of their own. */
const ONE_SIDED = /^weather after$/
/** Places that no seed can be counted on to reach. */
const RARE = /^(http read turn|store\.(forgetSubscription|quarantine|activeSessions)) /

const SITES = [...KNOWN_SITES, ...UPKEEP_SITES, ...SCOPE_SITES]

/** Places at which nothing crashed yet. */
export function missing({ crashed }: Tally): string[] {
  return SITES.flatMap((site) => [`${site} before`, `${site} after`]).filter(
    (place) => !ONE_SIDED.test(place) && !crashed.has(place),
  )
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
    ...missing(tally).map((place) => `no crash ${place}`),
    ...EVERY.filter((fault) => !tally.faults.has(fault)).map((fault) => `never ${fault}`),
    ...unknown.map((place) => `a place that known-sites.ts does not name: ${place}`),
  ]
}
