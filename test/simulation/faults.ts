import { Chance } from './chance.ts'
import type { When } from './sites.ts'

/** What may go wrong at a place. What each does stands where it is done. */
export type Fault =
  | 'crash'
  // on the way of a request
  | 'refused'
  | 'reset'
  | 'lost'
  | 'lost_reply'
  | 'reset_reply'
  /** The answer came, and is not HTTP that we can read: its body is cut, or its headers are too long. */
  | 'unreadable_reply'
  | 'slow'
  | 'twice'
  // the service
  | 'bad_gateway'
  | 'internal_error'
  | 'rate_limit'
  | 'directory'
  | 'project_limit'
  | 'unreadable'
  // the stream
  | 'cut'
  | 'half'
  | 'stall'
  | 'pause'
  | 'repeat'
  | 'replay_stop'
  // the application
  | 'error'
  | 'hang'
  | 'gone'
  | 'redirect'
  | 'busy'
  | 'verdict_retry'
  | 'verdict_dead'
  | 'garbage'
  // the weather
  | 'service_unreachable'
  | 'app_unreachable'
  | 'disk_full'
  | 'disk_refuses'
  | 'disk_error'
  | 'disk_slow'
  | 'clock_ahead'
  | 'clock_back'
  | 'revoked'
  | 'restart'
  | 'unsubscribed'
  | 'asleep'
  /** One of several processes does not reach the database, or stands still, or is stopped for a while. */
  | 'partition'
  | 'frozen'
  | 'leaves'
  /** No process reaches the database; all reach it but cannot renew their leases; an administrator sets its clock. */
  | 'outage'
  | 'overload'
  | 'store_clock'

export interface Fired {
  /** The number of the passage, from 1. */
  passage: number
  site: string
  when: When
  fault: Fault
}

/** Decides what goes wrong. */
export interface Plan {
  decide(passage: number, site: string, when: When, possible: readonly Fault[]): Fault | null
}

export const NOTHING: Plan = { decide: () => null }

/** Exactly these faults, by the number of the passage. */
export function only(faults: ReadonlyMap<number, Fault>): Plan {
  return {
    decide(passage, _site, _when, possible) {
      const fault = faults.get(passage)
      return fault !== undefined && possible.includes(fault) ? fault : null
    },
  }
}

/** Rates of one seed: each seed has another mix, and some kinds not at all. */
interface Rates {
  crash: number
  other: number
  weather: number
  kinds: ReadonlySet<Fault>
  /** Where they strike, apart from crashes and the weather; null: everywhere. */
  places: ReadonlySet<string> | null
}

/** Faults that lead to places that are seldom seen. */
const LEADS: Readonly<Record<string, Fault>> = {
  'store.settings.pauseHandler': 'gone',
  'http delete webhook': 'unsubscribed',
  'store.commit call received': 'error',
}

/** One fault at the first passage of a place, such as `store.commit frames before`; null: wherever it is possible. */
export interface Aim {
  fault: Fault
  place: string | null
}

/** What the seed draws, and the fault that is aimed, once. */
export function aimed(seed: number, sites: readonly string[], { fault, place }: Aim): Plan {
  const rest = drawn(seed, sites)
  let lead = LEADS[place?.replace(/ (before|after)$/, '') ?? '']
  let hit = false
  return {
    decide(passage, site, when, possible) {
      if (lead !== undefined && possible.includes(lead)) {
        const first = lead
        lead = undefined
        return first
      }
      if (!hit && (place ?? `${site} ${when}`) === `${site} ${when}` && possible.includes(fault)) {
        hit = true
        return fault
      }
      return rest.decide(passage, site, when, possible)
    },
  }
}

/** Stops and starts amid what is slow: whatever outlives a stop shows there, and hardly elsewhere. */
const RESTLESS: readonly Fault[] = ['restart', 'asleep', 'disk_slow', 'slow']

/** Seeds with answers that cannot be read; those in the table of planted bugs and of old stories are none of them. */
const UNREADABLE = { of: 24, rest: 12 }

/** How often a fault is drawn where it is possible, apart from crashes, which are aimed. */
export function drawn(seed: number, sites: readonly string[], replicas = 1): Plan {
  const chance = new Chance(seed, 'faults')
  // Where nothing goes wrong, more can be asked for.
  if (chance.is(0.1)) return NOTHING
  const rates: Rates = {
    crash: chance.pick([0, 0, 0.0005, 0.002]),
    other: chance.pick([0, 0.01, 0.03, 0.1]),
    weather: chance.pick([0, 0.05, 0.2]),
    // One kind alone shows what it costs.
    kinds: new Set(chance.is(0.1) ? [chance.pick(ALL)] : ALL.filter(() => chance.is(0.6))),
    places: null,
  }
  if (new Chance(seed, 'restless').is(0.1)) {
    rates.other = Math.max(rates.other, 0.03)
    rates.weather = Math.max(rates.weather, 0.1)
    rates.kinds = new Set([...rates.kinds, ...RESTLESS])
  }
  // What a few places do that fail often, many that fail seldom never bring together.
  const focus = new Chance(seed, 'focus')
  if (focus.is(0.15)) {
    rates.other = 0.2
    rates.places = new Set(sites.filter(() => focus.is(0.1)))
  }
  // Much of a few kinds at once: what seldom comes together at these places, or anywhere.
  const dense = new Chance(seed, 'dense')
  if (dense.is(0.1)) {
    rates.crash = dense.pick([0, 0.002, 0.01])
    rates.other = dense.pick([0.15, 0.35])
    rates.weather = dense.pick([0, 0.1, 0.3])
    rates.kinds = new Set([...ALL.filter(() => dense.is(0.3)), 'slow'])
    rates.places = dense.is(0.5) ? new Set(sites.filter(() => dense.is(0.3))) : null
  }
  if (seed % UNREADABLE.of === UNREADABLE.rest) {
    const unreadable = new Chance(seed, 'unreadable answers')
    rates.other = Math.max(rates.other, unreadable.pick([0.03, 0.1, 0.3]))
    const others = unreadable.is(0.5) ? rates.kinds : []
    rates.kinds = new Set([...others, 'unreadable_reply'])
  }
  if (replicas > 1) {
    const several = new Chance(seed, 'faults of several')
    rates.weather = several.pick([0.02, 0.05, 0.15])
    rates.other = Math.min(rates.other, several.pick([0, 0.01, 0.03]))
    rates.kinds = new Set([...rates.kinds, ...SEVERAL.filter(() => several.is(0.6))])
  }
  // Rare places are hit as often as common ones when they are aimed at.
  const aims = Array.from({ length: chance.pick([0, 1, 1, 2, 3]) }, () => ({
    site: chance.pick(sites),
    when: chance.pick<When>(['before', 'after']),
    left: chance.pick([1, 1, 2, 3, 5, 8, 13, 30]),
  }))
  const rateOf = (site: string): number => {
    if (site === 'weather') return rates.weather
    return rates.places?.has(site) === false ? 0 : rates.other
  }
  return {
    decide(_passage, site, when, possible) {
      for (const aim of aims) {
        if (aim.site === site && aim.when === when && --aim.left === 0 && possible.includes('crash'))
          return 'crash'
      }
      const rate = rateOf(site)
      if (possible.length > (possible[0] === 'crash' ? 1 : 0) && rate > 0 && chance.is(rate)) {
        const kinds = possible.filter((fault) => fault !== 'crash' && rates.kinds.has(fault))
        if (kinds.length > 0) return chance.pick(kinds)
      }
      return possible[0] === 'crash' && rates.crash > 0 && chance.is(rates.crash) ? 'crash' : null
    },
  }
}

/** A seed draws through these: one more would give every seed other faults. */
const ALL: readonly Fault[] = [
  'crash',
  'refused',
  'reset',
  'lost',
  'lost_reply',
  'reset_reply',
  'slow',
  'twice',
  'bad_gateway',
  'internal_error',
  'rate_limit',
  'directory',
  'project_limit',
  'cut',
  'half',
  'stall',
  'pause',
  'repeat',
  'replay_stop',
  'error',
  'hang',
  'gone',
  'redirect',
  'busy',
  'verdict_retry',
  'verdict_dead',
  'garbage',
  'service_unreachable',
  'app_unreachable',
  'disk_full',
  'disk_refuses',
  'disk_error',
  'disk_slow',
  'clock_ahead',
  'clock_back',
  'revoked',
  'restart',
  'unsubscribed',
  'asleep',
  'unreadable',
]

/** What several processes on one store have, and what parts them. */
export const SEVERAL: readonly Fault[] = [
  'partition',
  'frozen',
  'leaves',
  'outage',
  'overload',
  'store_clock',
  'lost',
  'lost_reply',
  'slow',
]

/** Also those that only some seeds have; the faults of several processes come with `--replicas`. */
export const EVERY: readonly Fault[] = [...ALL, 'unreadable_reply']
