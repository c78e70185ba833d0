import { expect, it } from 'vitest'
import { left, received, shared, type Holding, type Report } from './shares.ts'

/** A process that says that it owns so much. */
function report(pid: number, shards: number, leads: boolean): Report {
  return {
    name: `replica ${pid}`,
    life: { pid, from: 1000, until: null },
    metrics: `session_sidecar_shards_owned ${shards}\nsession_sidecar_leader ${Number(leads)}\n`,
  }
}

/** The row of a process that owns so much. */
function holding(pid: number, shards: number, leads: boolean): Holding {
  return { pid, startedAt: 1200, shards, leads }
}

const REPORTS = [report(1, 22, true), report(2, 21, false), report(3, 21, false)]
const HOLDINGS = [holding(1, 22, true), holding(2, 21, false), holding(3, 21, false)]

function messages(reports: readonly Report[], holdings: readonly Holding[]): string[] {
  return shared(reports, holdings).map(({ message }) => message)
}

it('finds nothing where each shard has one owner, which knows it', () => {
  expect(shared(REPORTS, HOLDINGS)).toEqual([])
})

it('finds a second process that thinks it leads', () => {
  expect(messages(REPORTS.with(1, report(2, 21, true)), HOLDINGS)).toEqual([
    'of replica 2 leader says 1, and there are 0',
    '2 processes lead',
  ])
})

it('finds a shard that two processes think they own', () => {
  expect(messages(REPORTS.with(2, report(3, 22, false)), HOLDINGS)).toEqual([
    'of replica 3 shards_owned says 22, and there are 21',
    'all processes own 65 shards',
  ])
})

it('finds a shard that no process has', () => {
  expect(messages(REPORTS.with(2, report(3, 20, false)), HOLDINGS.with(2, holding(3, 20, false)))).toEqual([
    'all processes own 63 shards',
  ])
})

it('finds a process that keeps more than its share', () => {
  const reports = [report(1, 23, true), report(2, 20, false), report(3, 21, false)]
  const holdings = [holding(1, 23, true), holding(2, 20, false), holding(3, 21, false)]
  expect(messages(reports, holdings)).toEqual(['replica 1 owns 23 shards, and its share is 22'])
})

it('finds a row of a process that does not live, also where its number was given again', () => {
  const before = { ...holding(2, 0, false), startedAt: 900 }
  expect(messages(REPORTS, [...HOLDINGS, before])).toEqual([
    'the process 2, which does not live, owns 0 shards',
  ])
})

it('finds a process without a row', () => {
  expect(messages(REPORTS, HOLDINGS.slice(0, 2))).toEqual(['replica 3 lives, and has no row'])
})

it('finds an attempt, and a run of a tool, that a process did not count', () => {
  const metrics = [
    'session_sidecar_callback_attempts_total{handler="app",outcome="delivered"} 2',
    'session_sidecar_callback_attempts_total{handler="app",outcome="retry"} 1',
    'session_sidecar_tool_runs_total{tool="lookup",outcome="output"} 1',
    'session_sidecar_tool_runs_total{tool="throws",outcome="failed"} 5',
  ].join('\n')
  const callbacks = [{ events: [1, 2] }, { events: [3] }]
  const runs = [{ name: 'lookup', withdrawn: false }]
  const find = (more: { callbacks?: typeof callbacks; runs?: typeof runs }): string[] =>
    received({ name: 'replica 1', metrics }, { callbacks, runs, ...more }).map(({ message }) => message)
  expect(find({})).toEqual([])
  expect(find({ callbacks: [...callbacks, { events: [3] }] })).toEqual([
    'of replica 1 callback_attempts_total says 3, and there are 4 at the application',
  ])
  expect(find({ runs: [...runs, { name: 'charge', withdrawn: false }] })).toEqual([
    'of replica 1 tool_runs_total charge says 0, and there are 1 at the application',
  ])
  expect(find({ runs: [] })).toEqual([
    'of replica 1 tool_runs_total lookup says 1, and there are 0 at the application',
  ])
  expect(find({ runs: [...runs, { name: 'lookup', withdrawn: true }] })).toEqual([])
})

it('finds a row that a process left when it stopped', () => {
  expect(left([])).toEqual([])
  expect(left([holding(1, 22, true)])).toMatchObject([
    { invariant: 'I11', message: 'the process 1 has stopped, and left its row with 22 shards and the lead' },
  ])
})
