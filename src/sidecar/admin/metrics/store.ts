import { STORE_REFUSALS, type Observer } from '../../../core/observer.ts'
import { COMMIT } from './buckets.ts'
import type { Meter } from './meter.ts'

/** Writes of the store, and those that it refused. */
export function storeMetrics(meter: Meter) {
  const refused = meter.counter('store_writes_refused_total', 'Writes that the store did not take, by why.', {
    reason: STORE_REFUSALS,
  })
  const fenced = meter.counter(
    'fenced_writes_total',
    'Writes that were refused since another process has taken the store over.',
  )
  const commits = meter.histogram(
    'store_commit_duration_seconds',
    'How long commits of the store took, until they were on disk.',
    {},
    COMMIT,
  )
  let accepts: boolean | null = null
  meter.gauge(
    'store_accepts_writes',
    '1 when the store took the last write, 0 when it did not.',
    () => accepts,
  )
  return {
    commit(seconds) {
      accepts = true
      commits.observe(seconds)
    },
    storeRefused(reason) {
      accepts = false
      refused.add(reason)
      if (reason === 'fenced') fenced.add()
    },
  } satisfies Partial<Observer>
}
