import type { Fault } from '../../checker/history.ts'
import { compare, sampleOf } from '../oracle/metrics.ts'
import type { Life } from '../sidecar.ts'
import { isRowOf, pidOf, type Row } from './rows.ts'
import type { ReplicaWorld } from './world.ts'

const SHARDS = 64

/** A living process, and what it says of itself. */
export interface Report {
  name: string
  life: Pick<Life, 'pid' | 'from' | 'until'>
  /** `/metrics` as text. */
  metrics: string
}

/** A row of a process that is not fenced, and what it owns by the database. */
export interface Holding extends Row {
  shards: number
  leads: boolean
}

export async function holdingsIn({ books }: Pick<ReplicaWorld, 'books'>): Promise<Holding[]> {
  const rows = await books.run<{
    process: string | null
    started_at: number
    shards: number
    leads: boolean
  }>(
    `SELECT process, started_at, (SELECT count(*) FROM sidecar.leases WHERE owner = r.id AND shard <> -1) AS shards,
       EXISTS (SELECT 1 FROM sidecar.leases WHERE owner = r.id AND shard = -1) AS leads
     FROM sidecar.replicas r WHERE NOT fenced`,
  )
  return rows.map(({ process, started_at: startedAt, shards, leads }) => ({
    pid: pidOf(process),
    startedAt,
    shards,
    leads,
  }))
}

/** I18, at rest: each shard and the lead has one owner, which lives and knows it, and no process has more than its share. */
export function shared(reports: readonly Report[], holdings: readonly Holding[]): Fault[] {
  const unknown = holdings.filter((row) => !reports.some(({ life }) => isRowOf(row, life)))
  const share = Math.ceil(SHARDS / reports.length)
  const messages = [
    ...unknown.map(({ pid, shards }) => `the process ${pid}, which does not live, owns ${shards} shards`),
    ...reports.flatMap(({ name, life, metrics }) => {
      const row = holdings.find((one) => isRowOf(one, life))
      if (row === undefined) return [`${name} lives, and has no row`]
      return [
        ...(row.shards > share ? [`${name} owns ${row.shards} shards, and its share is ${share}`] : []),
        ...compare(metrics, [
          ['shards_owned', {}, row.shards],
          ['leader', {}, Number(row.leads)],
        ]).map(({ message }) => `of ${name} ${message}`),
      ]
    }),
  ]
  const sum = (name: string): number =>
    reports.reduce((all, { metrics }) => all + sampleOf(metrics, `session_sidecar_${name}`), 0)
  if (sum('shards_owned') !== SHARDS) messages.push(`all processes own ${sum('shards_owned')} shards`)
  if (sum('leader') !== 1) messages.push(`${sum('leader')} processes lead`)
  return messages.map((message) => ({ invariant: 'I18', message }))
}

/** What the application received of one process. */
export interface Received {
  callbacks: readonly { events: readonly unknown[] }[]
  /** `withdrawn`: its call ended without a result. */
  runs: readonly { name: string; withdrawn: boolean }[]
}

/**
 * I14: a process counts each fact that it sent, and each run of a tool outside of it. A turn may end in the 20 ms that a tool
 * runs: then the run is ended, and it is not counted.
 */
export function received(
  { name, metrics }: Pick<Report, 'name' | 'metrics'>,
  { callbacks, runs }: Received,
): Fault[] {
  const sent = callbacks.reduce((sum, { events }) => sum + events.length, 0)
  const toolRuns = ['lookup', 'charge'].map((tool): [string, Record<string, string>, number] => {
    const mine = runs.filter((run) => run.name === tool)
    const certain = mine.filter(({ withdrawn }) => !withdrawn).length
    const counted = sampleOf(metrics, 'session_sidecar_tool_runs_total', { tool })
    return ['tool_runs_total', { tool }, Math.min(Math.max(counted, certain), mine.length)]
  })
  return compare(metrics, [['callback_attempts_total', {}, sent], ...toolRuns]).map(
    ({ invariant, message }) => ({ invariant, message: `of ${name} ${message} at the application` }),
  )
}

/** I11: processes that have stopped left no row, and own nothing. */
export function left(holdings: readonly Holding[]): Fault[] {
  return holdings.map(({ pid, shards, leads }) => ({
    invariant: 'I11',
    message: `the process ${pid} has stopped, and left its row with ${shards} shards${leads ? ' and the lead' : ''}`,
  }))
}
