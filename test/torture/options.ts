import { parseArgs } from 'node:util'
import { wholeNumber } from '../support/command.ts'

export interface Options {
  minutes: number
  seed: number
  /** SIGKILLs in place of minutes. */
  kills: number | null
  /** Only so many rounds, all of them storms. */
  rounds: number | null
  parallel: number
  /** `build`: build it first; `built`: what is in dist; `source`: src as it is. */
  program: 'build' | 'built' | 'source'
}

export const USAGE = `npm run torture -- [--minutes M] [--kills N] [--seed S] [--rounds R] [--parallel P] [--built | --source]

  --minutes M   about so long: 3 by default; the last third goes to one life that is left alone
  --kills N     instead: as many rounds as it takes for N times SIGKILL
  --seed S      of the first round; each round has the next; any by default
  --rounds R    instead: so many rounds, such as one that is to be repeated
  --parallel P  rounds at the same time, 2 by default
  --built       dist as it is, in place of a fresh build
  --source      the source as it is
`

/** @throws {TypeError} on what is no option, or no number. */
export function readOptions(args: readonly string[], now: number): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '3' },
      seed: { type: 'string' },
      kills: { type: 'string' },
      rounds: { type: 'string' },
      parallel: { type: 'string', default: '2' },
      built: { type: 'boolean', default: false },
      source: { type: 'boolean', default: false },
    },
  })
  const minutes = Number(values.minutes)
  if (!(minutes > 0)) throw new TypeError('--minutes must be a number above 0')
  return {
    minutes,
    seed: wholeNumber('seed', values.seed ?? String((now % 1_000_000) + 1)),
    kills: values.kills === undefined ? null : wholeNumber('kills', values.kills),
    rounds: values.rounds === undefined ? null : wholeNumber('rounds', values.rounds),
    parallel: wholeNumber('parallel', values.parallel),
    program: values.source ? 'source' : values.built ? 'built' : 'build',
  }
}
