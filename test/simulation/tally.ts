import type { Fault } from './faults.ts'
import { faultsText } from './replay.ts'
import type { Mode, Outcome } from './run.ts'

/** The first seed that broke an invariant in one way. */
export interface Broken {
  seed: number
  mode: Mode
  invariant: string
  message: string
  /** What went wrong last before it broke. */
  after: string
  faults: string
  times: number
}

/** What a number of seeds came to: plain data, which a worker can hand over. */
export interface Tally {
  seeds: number
  /** Things that happened at their virtual time. */
  happened: number
  /** Before and after calls through ports. */
  passages: number
  lives: number
  /** By place, such as `store.commit frames before`. */
  passed: Map<string, number>
  crashed: Map<string, number>
  faults: Map<Fault, number>
  /** All traces in one number, whatever the order of the seeds. */
  traces: number
  /** By invariant and what went wrong last. */
  broken: Map<string, Broken>
}

export function newTally(): Tally {
  return {
    seeds: 0,
    happened: 0,
    passages: 0,
    lives: 0,
    passed: new Map(),
    crashed: new Map(),
    faults: new Map(),
    traces: 0,
    broken: new Map(),
  }
}

export function count(tally: Tally, outcome: Outcome): void {
  const { seed, mode, fired, passed, violation } = outcome
  tally.seeds++
  tally.happened += outcome.happened
  tally.lives += outcome.lives
  for (const [place, times] of passed) {
    add(tally.passed, place, times)
    tally.passages += times
  }
  for (const { site, when, fault } of fired) {
    add(tally.faults, fault, 1)
    if (fault === 'crash') add(tally.crashed, `${site} ${when}`, 1)
  }
  tally.traces = (tally.traces ^ Math.imul(Number.parseInt(outcome.hash, 16), seed * 2 + 1)) >>> 0
  if (violation === null) return
  const last = fired.at(-1)
  note(tally, {
    seed,
    mode,
    ...violation,
    after: last === undefined ? 'nothing' : `${last.fault} ${last.when} ${last.site}`,
    faults: faultsText(fired),
    times: 1,
  })
}

export function note(tally: Tally, broken: Broken): void {
  const key = `${broken.invariant} after ${broken.after}`
  const known = tally.broken.get(key)
  if (known === undefined) tally.broken.set(key, broken)
  else {
    const first = known.seed < broken.seed ? known : broken
    tally.broken.set(key, { ...first, times: known.times + broken.times })
  }
}

/** Adds what another worker did. */
export function merge(into: Tally, other: Tally): void {
  into.seeds += other.seeds
  into.happened += other.happened
  into.passages += other.passages
  into.lives += other.lives
  into.traces = (into.traces ^ other.traces) >>> 0
  for (const [place, times] of other.passed) add(into.passed, place, times)
  for (const [place, times] of other.crashed) add(into.crashed, place, times)
  for (const [fault, times] of other.faults) add(into.faults, fault, times)
  for (const broken of other.broken.values()) note(into, broken)
}

function add<K>(sums: Map<K, number>, key: K, times: number): void {
  sums.set(key, (sums.get(key) ?? 0) + times)
}
