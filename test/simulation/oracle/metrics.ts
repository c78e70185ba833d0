import type { Counts } from '../counts.ts'
import { STRANGER } from '../scenario.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from '../../checker/history.ts'

/** I14: each process counted its reports, also before a crash; together they counted everything. */
export function metricFaults(simulation: Simulation): Fault | null {
  for (const { number, counts } of simulation.all) {
    const wrong = miscounted(counts)
    if (wrong !== null) return { invariant: 'I14', message: `life ${number}: ${wrong}` }
  }
  return uncounted(simulation)
}

function miscounted({ facts, calls, strange, callbacks, expected }: Counts): string | null {
  if (facts !== expected.facts) return `${facts} facts were counted and ${expected.facts} were new`
  for (const [callId, count] of calls) {
    if (count > 1) return `the end of ${callId} was counted ${count} times`
    if (!expected.closed.has(callId)) return `the end of ${callId} was counted and not stored`
  }
  for (const callId of expected.closed) if (!calls.has(callId)) return `the end of ${callId} was not counted`
  for (const [callId, count] of strange)
    if (count > 1 || !expected.strange.has(callId))
      return `${callId} was counted as without a tool ${count} times`
  for (const callId of expected.strange)
    if (!strange.has(callId)) return `${callId} has no tool and was not counted`
  for (const [handler, { delivered, failed, late }] of expected.answers) {
    const count = (outcome: string): number => callbacks.get(`${handler} ${outcome}`) ?? 0
    const taken = count('delivered')
    if (taken < delivered || taken > delivered + late)
      return `${taken} deliveries to ${handler} were counted, and it took ${delivered}, ${late} of them late`
    if (count('retry') + count('dead') < failed)
      return `${count('retry')} retries and ${count('dead')} dead letters of ${handler} were counted, and it refused ${failed}`
  }
  return null
}

const DISK: ReadonlySet<string> = new Set(['disk_full', 'disk_refuses', 'disk_error'])

/**
 * Events that were not reported, because of a crash or a full disk, are not counted; without those
 * the counts are complete.
 */
function uncounted({ all, db, crashes, sites, operator, shared }: Simulation): Fault | null {
  // What a process wrote before it was fenced it may not know.
  if (all.some(({ disturbed }) => disturbed !== 'no') || (shared?.takeovers ?? 0) > 0) return null
  if (crashes > 0 || sites.second || sites.fired.some(({ fault }) => DISK.has(fault))) return null
  const one = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
  const sum = (of: (counts: Counts) => number): number =>
    all.reduce((total, { counts }) => total + of(counts), 0)
  const callbacks = (outcome: string) => (counts: Counts) =>
    [...counts.callbacks].reduce((total, [key, n]) => total + (key.endsWith(` ${outcome}`) ? n : 0), 0)
  const pairs: [string, number, number][] = [
    ['facts', sum(({ facts }) => facts), one('SELECT count(*) FROM all_facts')],
    [
      'closed calls',
      sum(({ calls }) => calls.size),
      one('SELECT count(*) FROM all_calls WHERE ended_at IS NOT NULL'),
    ],
  ]
  // A call may come and go between two reads: those that the facts report, and those that the service had.
  const strange = sum((counts) => counts.strange.size)
  pairs.push([
    'calls without a tool',
    strange,
    one(
      `SELECT count(*) FROM all_facts WHERE type = 'action.required'
       AND body ->> '$.action.type' = 'function_call' AND body ->> '$.action.name' = '${STRANGER}'`,
    ),
  ])
  // What an operator has delivered again is one delivery and counts twice.
  if (!operator.redelivered)
    pairs.push(
      [
        'delivered callbacks',
        sum(callbacks('delivered')),
        one('SELECT count(*) FROM all_deliveries WHERE status = 1'),
      ],
      ['dead letters', sum(callbacks('dead')), one('SELECT count(*) FROM all_deliveries WHERE status = 2')],
    )
  for (const [what, counted, happened] of pairs) {
    if (counted !== happened)
      return { invariant: 'I14', message: `${counted} ${what} were counted, and ${happened} there are` }
  }
  return null
}
