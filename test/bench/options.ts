import { parseArgs } from 'node:util'
import { wholeNumber } from '../support/command.ts'

/** Facts of the store that `grown` fills first. */
const FACTS = 10_000_000
/** Facts of each of its sessions, unless `--sessions` gives their number. */
const FACTS_EACH = 100
/** Repetitions whose median counts; fewer say little on a machine that does something else too. */
const RUNS = 5

/** Facts, in so many sessions. */
export interface Filled {
  facts: number
  sessions: number
}

export interface Options {
  /** Beginnings of the names of measures; empty: all. */
  only: string[]
  runs: number
  json: boolean
  profile: boolean
  /** What the store of `grown` and `postgres, grown` holds first. */
  filled: Filled
  /** Of PostgreSQL, `name=value`. */
  settings: string[]
  /** The folder of another checkout; null: none. */
  against: string | null
  /** A part of what is sent, for trying the bench itself. */
  scale: number
}

export const USAGE = `npm run bench -- [--only NAME]... [--runs N] [--json] [--profile] [--scale PART] [--facts N]
                 [--sessions N] [--setting NAME=VALUE]... [--against FOLDER]

  --only NAME    only the rows whose name begins with NAME (repeatable): burst, memory, webhooks, emulator, ...
  --runs N       number of runs, ${RUNS} by default
  --json         print every figure of every run as JSON
  --profile      instead: one burst with the sidecar under --cpu-prof, and the functions that took most time; with
                 --only postgres, on PostgreSQL
  --scale PART   send only this part of the load, to try the bench itself; such figures mean little
  --facts N      number of facts in the store of "grown", ${FACTS} by default. That store is built once in data/ and kept.
                 Without --only grown, the row is skipped if no such store exists. Also the number of facts in the
                 database of "postgres, grown", which is filled at each run and measured only with --only "postgres, grown"
  --sessions N   number of sessions of these facts, a hundredth of the facts by default
  --setting NAME=VALUE
                 setting of the PostgreSQL that the bench starts (repeatable), for example shared_buffers=1GB
  --against FOLDER
                 instead: the bursts, in pairs with those of the program in another checkout, such as a worktree of an
                 older commit with its packages installed
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
      facts: { type: 'string', default: String(FACTS) },
      sessions: { type: 'string' },
      against: { type: 'string' },
      setting: { type: 'string', multiple: true, default: [] },
    },
  })
  const scale = Number(values.scale)
  if (!(scale > 0 && scale <= 1)) throw new TypeError('--scale must be a number above 0, at most 1')
  const facts = wholeNumber('facts', values.facts)
  return {
    only: values.only,
    runs: wholeNumber('runs', values.runs),
    json: values.json,
    profile: values.profile,
    scale,
    filled: { facts, sessions: sessionsOf(facts, values.sessions) },
    settings: values.setting,
    against: values.against ?? null,
  }
}

function sessionsOf(facts: number, given: string | undefined): number {
  if (given === undefined) return Math.max(1, Math.floor(facts / FACTS_EACH))
  return wholeNumber('sessions', given)
}
