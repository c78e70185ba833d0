import { DEAD, DELIVERED } from '../books.ts'
import type { Fault } from '../../checker/history.ts'
import type { Pages } from '../books.ts'
import type { Evidence } from './evidence.ts'

/** The sum of a metric's samples whose labels include `labels`; 0 when there is none. */
export function sampleOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return text
    .split('\n')
    .filter((line) => line.startsWith(name) && /[{ ]/.test(line.charAt(name.length)))
    .filter((line) => wanted.every((part) => line.includes(part)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

const PREFIX = 'session_sidecar_'

type Standing = Pick<Evidence, 'metrics' | 'deliveries' | 'openActions'> & {
  ledger: Pick<Evidence['ledger'], 'sessions'>
}

/** I14: what is read now equals what there is, in whatever life. Of several processes one alone reports it. */
export function gauges({ metrics, ledger, deliveries, openActions }: Standing): Fault[] {
  const alive = ledger.sessions.filter(({ deleted_at }) => deleted_at === null)
  const statuses = ['idle', 'working', 'requires_action', 'failed']
  const pairs: [string, Record<string, string>, number][] = [
    ...statuses.map((status): [string, Record<string, string>, number] => [
      'sessions',
      { status },
      alive.filter((session) => session.status === status).length,
    ]),
    ['required_actions', {}, openActions.length],
    ['callback_queue_depth', {}, deliveries.filter(({ status }) => status === 0).length],
    ['callback_dead_letters_kept', {}, deliveries.filter(({ status }) => status === DEAD).length],
  ]
  return compare(metrics, pairs)
}

/** What the program counts. */
export interface Counts {
  facts: number
  delivered: number
  /** Deliveries that were dead at some time. */
  dead: number
  endedCalls: number
}

/** What has happened, by what is stored. */
export function countsIn({
  facts,
  deliveries,
  calls,
}: Pick<Pages, 'facts' | 'deliveries' | 'calls'>): Counts {
  return {
    facts: facts.length,
    delivered: deliveries.filter(({ status }) => status === DELIVERED).length,
    dead: deliveries.filter(({ log }) => /dead/.test(log)).length,
    endedCalls: calls.filter(({ ended_at }) => ended_at !== null).length,
  }
}

/** I14, for programs that were not killed: what they counted equals what happened since they began. */
export function counters(metrics: string, since: Counts, until: Counts): Fault[] {
  return compare(metrics, [
    ['facts_total', {}, until.facts - since.facts],
    ['callback_attempts_total', { outcome: 'delivered' }, until.delivered - since.delivered],
    ['callback_dead_letters_total', {}, until.dead - since.dead],
    ['tool_calls_total', {}, until.endedCalls - since.endedCalls],
  ])
}

/** Each metric with labels, and what it must show. */
export function compare(
  metrics: string,
  pairs: readonly [string, Record<string, string>, number][],
): Fault[] {
  return pairs.flatMap(([name, labels, happened]) => {
    const counted = sampleOf(metrics, PREFIX + name, labels)
    if (counted === happened) return []
    const label = Object.values(labels).map((value) => ` ${value}`)
    return [
      { invariant: 'I14', message: `${name}${label.join('')} says ${counted}, and there are ${happened}` },
    ]
  })
}
