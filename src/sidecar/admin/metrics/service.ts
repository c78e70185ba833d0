import type { Observer } from '../../../core/observer.ts'
import { EXCHANGE } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** Requests to the service, and its rate limits. */
export function serviceMetrics(meter: Meter) {
  const operation = new LabelValues()
  const requests = meter.counter('api_requests_total', 'Requests to the service that ended.', {
    operation,
    status_class: ['1xx', '2xx', '3xx', '4xx', '5xx', 'none'],
  })
  const durations = meter.histogram(
    'api_request_duration_seconds',
    'Duration of requests to the service.',
    { operation },
    EXCHANGE,
  )
  const retries = meter.counter('api_retries_total', 'Requests sent again, by error code.', { code: [] })
  const bucket = new LabelValues([], 20)
  const remaining = new Map<string, number>()
  meter.gauges(
    'api_rate_limit_remaining',
    'Requests left in a bucket of the rate limit, as the service reported.',
    { bucket },
    async () => [...remaining],
  )
  return {
    request({ operation, statusClass, seconds }) {
      requests.add(operation, statusClass)
      durations.count(seconds, operation)
    },
    requestRetried: (code) => retries.add(code),
    budget: (name, left) => void remaining.set(bucket.of(name), left),
  } satisfies Partial<Observer>
}
