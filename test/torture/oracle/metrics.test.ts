import { expect, it } from 'vitest'
import type { Pages } from '../books.ts'
import { counters, countsIn, gauges, type Counts } from './metrics.ts'

const NOTHING: Counts = { facts: 0, delivered: 0, dead: 0, endedCalls: 0 }
/** Two processes that each stored a fact and delivered it, and one of which leads. */
const METRICS = [
  'session_sidecar_facts_total{type="turn.completed"} 1',
  'session_sidecar_callback_attempts_total{handler="app",outcome="delivered"} 1',
  'session_sidecar_callback_queue_depth{handler="app"} 0',
  'session_sidecar_facts_total{type="turn.completed"} 1',
  'session_sidecar_callback_attempts_total{handler="app",outcome="delivered"} 1',
].join('\n')
const DELIVERY = {
  fact_id: 'f',
  type: 't',
  handler: 'app',
  session_id: null,
  status: 1,
  attempts: 1,
  log: '',
}

it('adds what several processes count up, and finds a fact that one of them counted twice, or not', () => {
  const until = { ...NOTHING, facts: 2, delivered: 2 }
  expect(counters(METRICS, NOTHING, until)).toEqual([])
  expect(counters(METRICS, { ...NOTHING, facts: 1 }, { ...until, facts: 3 })).toEqual([])
  expect(counters(METRICS, NOTHING, { ...until, facts: 1 })).toEqual([
    { invariant: 'I14', message: 'facts_total says 2, and there are 1' },
  ])
  expect(counters(METRICS, NOTHING, { ...until, delivered: 3 })).toEqual([
    { invariant: 'I14', message: 'callback_attempts_total delivered says 2, and there are 3' },
  ])
})

it('counts what is stored', () => {
  const pages: Pick<Pages, 'facts' | 'deliveries' | 'calls'> = {
    facts: [],
    deliveries: [DELIVERY, { ...DELIVERY, status: 2, log: '{"verdict":"dead"}' }],
    calls: [],
  }
  expect(countsIn(pages)).toEqual({ facts: 0, delivered: 1, dead: 1, endedCalls: 0 })
})

it('finds a gauge of the whole store that two processes report, or that none does', () => {
  const pending = { ...DELIVERY, status: 0 }
  const metrics = 'session_sidecar_callback_queue_depth{handler="app"} 1'
  const find = (text: string): string[] =>
    gauges({ metrics: text, ledger: { sessions: [] }, deliveries: [pending], openActions: [] }).map(
      ({ message }) => message,
    )
  expect(find(metrics)).toEqual([])
  expect(find(`${metrics}\n${metrics}`)).toEqual(['callback_queue_depth says 2, and there are 1'])
  expect(find('')).toEqual(['callback_queue_depth says 0, and there are 1'])
})
