import { ALL } from './faults.ts'
import { KNOWN_SITES } from './known-sites.ts'
import type { Outcome } from './run.ts'

/** Places that have no after, or no before, of their own. */
const ONE_SIDED = /^weather after$/
/** Places that no seed can be counted on to reach. */
const RARE = /^(http read turn|store\.(forgetSubscription|quarantine|activeSessions)) /

/** What a number of runs tried: every place crashed before and after, every fault seen. */
export class Coverage {
  readonly #passed = new Set<string>()
  readonly #crashed = new Map<string, number>()
  readonly #faults = new Map<string, number>()

  add({ passed, fired }: Outcome): void {
    for (const place of passed.keys()) this.#passed.add(place)
    for (const { site, when, fault } of fired) {
      this.#faults.set(fault, (this.#faults.get(fault) ?? 0) + 1)
      if (fault === 'crash') {
        const place = `${site} ${when}`
        this.#crashed.set(place, (this.#crashed.get(place) ?? 0) + 1)
      }
    }
  }

  /** Places at which nothing crashed yet. */
  missing(): string[] {
    return KNOWN_SITES.flatMap((site) => [`${site} before`, `${site} after`]).filter(
      (place) => !ONE_SIDED.test(place) && !this.#crashed.has(place),
    )
  }

  /** What was not tried, in words. */
  gaps(): string[] {
    const known = new Set(KNOWN_SITES)
    const unknown = [...this.#passed].filter(
      (place) =>
        /^(store|http|clock)[. ]/.test(place) &&
        !RARE.test(place) &&
        !known.has(place.replace(/ (before|after)$/, '')),
    )
    return [
      ...this.missing().map((place) => `no crash ${place}`),
      ...ALL.filter((fault) => !this.#faults.has(fault)).map((fault) => `never ${fault}`),
      ...unknown.map((place) => `a place that known-sites.ts does not name: ${place}`),
    ]
  }

  summary(): string {
    const crashes = this.#faults.get('crash') ?? 0
    let all = 0
    for (const count of this.#faults.values()) all += count
    return `${crashes} crashes at ${this.#crashed.size} places, ${all - crashes} other faults of ${this.#faults.size} kinds`
  }
}
