import { parseArgs } from 'node:util'
import { wholeNumber } from '../support/command.ts'

/** Repetitions whose median counts; fewer say little on a machine that does something else too. */
const RUNS = 5

export interface Options {
  /** Beginnings of the names of measures; empty: all. */
  only: string[]
  runs: number
  json: boolean
  profile: boolean
  /** A part of what is sent, for trying the bench itself. */
  scale: number
}

export const USAGE = `npm run bench -- [--only NAME]... [--runs N] [--json] [--profile] [--scale PART]

  --only NAME    only what begins with NAME (may be given again): burst, memory, webhooks, emulator, ...
  --runs N       repetitions, ${RUNS} by default
  --json         every figure of every repetition
  --profile      instead: one burst with the sidecar under --cpu-prof, and where its time went
  --scale PART   send a part of what is due, to try the bench itself; such figures say little
`

/** @throws {TypeError} on what is no option. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      runs: { type: 'string', default: String(RUNS) },
      json: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
    },
  })
  const scale = Number(values.scale)
  if (!(scale > 0 && scale <= 1)) throw new TypeError('--scale must be a number above 0, at most 1')
  return {
    only: values.only,
    runs: wholeNumber('runs', values.runs),
    json: values.json,
    profile: values.profile,
    scale,
  }
}
