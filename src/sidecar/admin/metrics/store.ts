import { STORE_REFUSALS, type Observer } from '../../../core/observer.ts'
import { COMMIT } from './buckets.ts'
import type { Meter } from './meter.ts'

/** Writes of the store, and those that it refused. */
export function storeMetrics(meter: Meter) {
  const refused = meter.counter('store_writes_refused_total', 'Writes that the store refused, by reason.', {
    reason: STORE_REFUSALS,
  })
  const fenced = meter.counter(
    'fenced_writes_total',
    'Writes that were refused because another process took over the store.',
  )
  const commits = meter.histogram(
    'store_commit_duration_seconds',
    'Duration of commits of the store, until they were on disk.',
    {},
    COMMIT,
  )
  let accepts: boolean | null = null
  meter.gauge('store_accepts_writes', '1 if the last write succeeded, 0 if it failed.', () => accepts)
  return {
    commit(seconds) {
      accepts = true
      commits.count(seconds)
    },
    storeRefused(reason) {
      accepts = false
      refused.add(reason)
      if (reason === 'fenced') fenced.add()
    },
  } satisfies Partial<Observer>
}
