import type { Simulation } from '../simulation.ts'
import type { Fault } from './rest.ts'

/**
 * I14: what the sidecar counted equals what happened. A crash takes what it had not told. Callbacks are counted as tried:
 * one whose end could not be written, for want of a disk, is tried again.
 */
export function metricFaults({ counts, db, crashes, sites }: Simulation): Fault | null {
  const one = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
  const pairs: [string, number, number][] = [
    ['facts', sum(counts.map(({ facts }) => facts)), one('SELECT count(*) FROM facts')],
    [
      'delivered callbacks',
      sum(counts.map(({ callbacks }) => callbacks['delivered'] ?? 0)),
      one('SELECT count(*) FROM deliveries WHERE status = 1'),
    ],
    [
      'dead letters',
      sum(counts.map(({ callbacks }) => callbacks['dead'] ?? 0)),
      one('SELECT count(*) FROM deliveries WHERE status = 2'),
    ],
    [
      'closed calls',
      sum(counts.map(({ calls }) => calls.size)),
      one('SELECT count(*) FROM calls WHERE ended_at IS NOT NULL'),
    ],
  ]
  const exact = crashes === 0 && !sites.fired.some(({ fault }) => fault === 'disk_full')
  for (const [what, counted, happened] of pairs) {
    if (exact && counted !== happened)
      return { invariant: 'I14', message: `${counted} ${what} were counted, and ${happened} there are` }
  }
  for (const { calls } of counts) {
    for (const [callId, count] of calls)
      if (count > 1) return { invariant: 'I14', message: `the end of ${callId} was counted ${count} times` }
  }
  return null
}

function sum(list: readonly number[]): number {
  return list.reduce((total, one) => total + one, 0)
}
