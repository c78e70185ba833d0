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
  /** Processes on one PostgreSQL; null: one process on SQLite. */
  replicas: number | null
  /** So many failovers are measured instead. */
  failovers: number | null
}

export const USAGE = `npm run torture -- [--minutes M] [--kills N] [--seed S] [--rounds R] [--parallel P] [--built | --source]
                   [--store postgres --replicas N [--failover F]]

  --minutes M   duration, 3 by default; with sqlite, one process runs without faults in the last third
  --kills N     instead of --minutes: rounds until SIGKILL was sent N times
  --seed S      seed of the first round, random by default; each further round has the next number
  --rounds R    instead of --minutes: this number of rounds. To repeat a round: --seed S --rounds 1
  --parallel P  number of rounds at the same time, 2 by default
  --built       run dist as it is, without a new build
  --source      run the source, without a build
  --store S     sqlite (default) or postgres: several processes on one PostgreSQL, which the command starts; one
                round at a time
  --replicas N  with --store postgres: number of processes, 3 by default
  --failover F  with --store postgres, instead of --minutes: measure F failovers, half of them after SIGKILL and half
                after SIGTERM
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
      store: { type: 'string', default: 'sqlite' },
      replicas: { type: 'string', default: '3' },
      failover: { type: 'string' },
    },
  })
  const minutes = Number(values.minutes)
  if (!(minutes > 0)) throw new TypeError('--minutes must be a number above 0')
  if (!['sqlite', 'postgres'].includes(values.store))
    throw new TypeError('--store must be sqlite or postgres')
  return {
    minutes,
    seed: wholeNumber('seed', values.seed ?? String((now % 1_000_000) + 1)),
    kills: values.kills === undefined ? null : wholeNumber('kills', values.kills),
    rounds: values.rounds === undefined ? null : wholeNumber('rounds', values.rounds),
    parallel: wholeNumber('parallel', values.parallel),
    program: values.source ? 'source' : values.built ? 'built' : 'build',
    replicas: values.store === 'sqlite' ? null : wholeNumber('replicas', values.replicas),
    failovers: values.failover === undefined ? null : wholeNumber('failover', values.failover),
  }
}
