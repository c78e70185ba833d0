import type { CallbackOutcome, HandlerState, Observer } from '../../../core/observer.ts'
import { CALLBACK } from './buckets.ts'
import { LabelValues } from './label.ts'
import { secondsOf, type Meter } from './meter.ts'
import type { Snapshot } from './snapshot.ts'

const OUTCOMES: readonly CallbackOutcome[] = ['delivered', 'retry', 'dead', 'unreachable', 'paused']

/** The most handlers with a series: those of the configuration, and those of earlier ones that the store still knows. */
const HANDLERS = 400

/** Callbacks to the handlers named `names`, and their pending deliveries. */
export function callbackMetrics(
  meter: Meter,
  names: readonly string[],
  snapshot: () => Promise<Snapshot | null>,
) {
  const handler = new LabelValues(names, HANDLERS)
  const attempts = meter.counter('callback_attempts_total', 'Attempts to deliver a fact to a handler.', {
    handler,
    outcome: OUTCOMES,
  })
  const durations = meter.histogram(
    'callback_duration_seconds',
    'Response time of handlers.',
    { handler },
    CALLBACK,
  )
  const deadLetters = meter.counter('callback_dead_letters_total', 'Deliveries that became dead letters.', {
    handler,
  })
  const dropped = meter.counter(
    'callback_transients_dropped_total',
    'Transient events that were dropped because the handler had no free slot.',
    { handler },
  )
  const states = new Map<string, HandlerState>(names.map((name) => [handler.of(name), 'up']))

  const backlogs = async () => Object.entries((await snapshot())?.counts.deliveries ?? {})
  meter.gauges('callback_queue_depth', 'Pending deliveries of a handler.', { handler }, async () =>
    (await backlogs()).map(([name, { pending }]) => [name, pending]),
  )
  meter.lowest(
    'callback_oldest_pending_timestamp_seconds',
    'When the oldest pending fact of a handler was stored. Absent when none is pending.',
    { handler },
    async () => (await backlogs()).map(([name, { oldestPending }]) => [name, secondsOf(oldestPending)]),
  )
  meter.gauges(
    'callback_dead_letters_kept',
    'Dead letters that were not retried yet.',
    { handler },
    async () => (await backlogs()).map(([name, { dead }]) => [name, dead]),
  )
  meter.lowest(
    'handler_up',
    '1 when a handler accepts callbacks, 0 when it is unreachable or paused.',
    { handler },
    async () => {
      const records = (await snapshot())?.handlers
      if (records === undefined) return []
      const paused = new Set(records.flatMap(({ name, pausedAt }) => (pausedAt === null ? [] : [name])))
      return [...states].map(([name, state]) => [name, state === 'up' && !paused.has(name)])
    },
  )

  return {
    callback(event) {
      attempts.add(event.handler, event.outcome)
      durations.count(event.attempt.ms / 1000, event.handler)
      if (event.outcome === 'dead') deadLetters.add(event.handler)
    },
    deadLettered: (name) => deadLetters.add(name),
    transientDropped: (name) => dropped.add(name),
    handler: (name, state) => void states.set(handler.of(name), state),
  } satisfies Partial<Observer>
}
