import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { wholeNumber } from '../support/command.ts'
import { SEED } from './exhaustive.ts'
import type { Fault } from './faults.ts'
import { FIXED } from './fixed.ts'
import { parseFaults } from './replay.ts'
import type { Mode } from './run.ts'

export interface Options {
  /** `brief` and `replays`: for programs. */
  play: 'one' | 'many' | 'exhaustive' | 'mutants' | 'brief' | 'replays'
  /** The one, or the first. */
  seed: number
  /** How many; Infinity where minutes are given. */
  seeds: number
  minutes: number | null
  mode: Mode
  threads: number
  journal: string | null
  faults: ReadonlyMap<number, Fault> | null
  /** Of FIXED, in place of what the seed draws. */
  scenario: string | null
  pairs: number
  /** Processes on one store, in place of what the seed draws; null: that. */
  replicas: number | null
  /** Only what has this in its name. */
  only: string | undefined
  write: boolean
}

export const USAGE = `npm run simulate -- [--seeds N | --minutes M] [--seed S] [--mode safety|liveness] [--threads T] [--journal FILE]
                    [--replicas N]
npm run simulate -- --seed S [--mode safety|liveness] [--faults LIST] [--replicas N]
npm run simulate -- --scenario NAME [--mode safety|liveness] [--faults LIST]
npm run simulate -- --exhaustive [--pairs N|all] [--only NAME]
npm run simulate -- --mutants [--seeds N] [--only NAME] [--write]

  --seeds N       number of seeds, 1000 by default
  --minutes M     run for this long instead
  --seed S        the first seed, 1 by default. Alone: only this seed; if it violates an invariant, its faults are
                  reduced to the fewest that still violate it
  --mode MODE     safety: faults until the end. liveness (the default): the faults stop, then everything must become idle
  --threads T     number of threads, by default one for each processor
  --journal FILE  records progress: the same command continues from there
  --faults LIST   these faults, as a violation prints them, instead of those that the seed draws
  --replicas N    processes on one store, 2 or 3; 1 by default
  --scenario NAME this scenario, instead of the one that the seed draws:
${Object.keys(FIXED)
  .map((name) => `                    '${name}'`)
  .join('\n')}
  --exhaustive    each of these scenarios with a crash at each place; with --pairs, also at this many pairs of places
  --mutants       each planted bug, in a copy of the source; --write also writes the table of the planted bugs
  --only NAME     only scenarios or planted bugs with NAME in their names, or in the names of their test files
`

/** @throws {TypeError} on what is no option, no number or no name. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      mode: { type: 'string', default: 'liveness' },
      threads: { type: 'string', default: String(availableParallelism()) },
      journal: { type: 'string' },
      faults: { type: 'string' },
      scenario: { type: 'string' },
      exhaustive: { type: 'boolean', default: false },
      pairs: { type: 'string', default: '0' },
      mutants: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      brief: { type: 'boolean', default: false },
      replays: { type: 'boolean', default: false },
      only: { type: 'string' },
      replicas: { type: 'string' },
    },
  })
  const { mode, scenario, minutes } = values
  if (mode !== 'safety' && mode !== 'liveness') throw new TypeError('--mode must be safety or liveness')
  if (scenario !== undefined && FIXED[scenario] === undefined)
    throw new TypeError(`there is no scenario "${scenario}"`)
  if (minutes !== undefined && !(Number(minutes) > 0))
    throw new TypeError('--minutes must be a number above 0')
  const alone = values.seeds === undefined && minutes === undefined
  const one = alone && (values.seed !== undefined || scenario !== undefined)
  const first = wholeNumber('seed', values.seed ?? '1', 0)
  return {
    play: playOf(values) ?? (one ? 'one' : 'many'),
    seed: scenario === undefined ? first : SEED,
    seeds: minutes === undefined ? wholeNumber('seeds', values.seeds ?? '1000') : Infinity,
    minutes: minutes === undefined ? null : Number(minutes),
    mode,
    threads: wholeNumber('threads', values.threads),
    journal: values.journal ?? null,
    faults: values.faults === undefined ? null : parseFaults(values.faults),
    scenario: scenario ?? null,
    pairs: values.pairs === 'all' ? Infinity : wholeNumber('pairs', values.pairs, 0),
    replicas: values.replicas === undefined ? null : wholeNumber('replicas', values.replicas),
    only: values.only,
    write: values.write,
  }
}

const PLAYS = ['exhaustive', 'mutants', 'replays', 'brief'] as const

function playOf(values: Readonly<Record<(typeof PLAYS)[number], boolean>>): Options['play'] | null {
  return PLAYS.find((play) => values[play]) ?? null
}
