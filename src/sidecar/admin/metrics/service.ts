import type { Observer } from '../../../core/observer.ts'
import { EXCHANGE } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** What we ask of the service, and what it lets us. */
export function serviceMetrics(meter: Meter): Pick<Observer, 'request' | 'requestRetried' | 'budget'> {
  const operation = new LabelValues()
  const requests = meter.counter('api_requests_total', 'Requests to the service that ended.', {
    operation,
    status_class: new LabelValues(['1xx', '2xx', '3xx', '4xx', '5xx', 'none'], 6),
  })
  const durations = meter.histogram(
    'api_request_duration_seconds',
    'How long requests to the service took.',
    'operation',
    operation,
    EXCHANGE,
  )
  const retries = meter.counter(
    'api_retries_total',
    'Requests sent again, by the error code that they got.',
    {
      code: new LabelValues(),
    },
  )
  const bucket = new LabelValues([], 20)
  const remaining = new Map<string, number>()
  meter.gauges(
    'api_rate_limit_remaining',
    'Requests that the service said were left in a rate bucket.',
    'bucket',
    () => remaining,
  )
  return {
    request({ operation, statusClass, seconds }) {
      requests.add(operation, statusClass)
      durations.observe(operation, seconds)
    },
    requestRetried: (code) => retries.add(code),
    budget: (name, left) => void remaining.set(bucket.of(name), left),
  }
}
