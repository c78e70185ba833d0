import { DELIVERED } from '../books.ts'
import type { Fault } from '../../checker/history.ts'
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

/** I14: what is read now equals what there is, in whatever life. */
export function gauges({ metrics, ledger, deliveries, openActions }: Evidence): Fault[] {
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
  ]
  return compare(metrics, pairs)
}

/** I14, for a program that lived once: what it counted equals what happened. */
export function counters({ metrics, facts, deliveries, calls }: Evidence): Fault[] {
  return compare(metrics, [
    ['facts_total', {}, facts.length],
    [
      'callback_attempts_total',
      { outcome: 'delivered' },
      deliveries.filter(({ status }) => status === DELIVERED).length,
    ],
    ['callback_dead_letters_total', {}, deliveries.filter(({ log }) => /dead/.test(log)).length],
    ['tool_calls_total', {}, calls.filter(({ ended_at }) => ended_at !== null).length],
  ])
}

function compare(metrics: string, pairs: readonly [string, Record<string, string>, number][]): Fault[] {
  return pairs.flatMap(([name, labels, happened]) => {
    const counted = sampleOf(metrics, PREFIX + name, labels)
    if (counted === happened) return []
    const label = Object.values(labels).join(' ')
    return [{ invariant: 'I14', message: `${name} ${label} says ${counted}, and there are ${happened}` }]
  })
}
