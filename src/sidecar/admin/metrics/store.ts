import { STORE_REFUSALS, type Observer } from '../../../core/observer.ts'
import { COMMIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** What is written to the store, and what it does not take. */
export function storeMetrics(meter: Meter): Pick<Observer, 'commit' | 'storeRefused'> {
  const refused = meter.counter('store_writes_refused_total', 'Writes that the store did not take, by why.', {
    reason: new LabelValues(STORE_REFUSALS),
  })
  for (const reason of STORE_REFUSALS) refused.expect(reason)
  const fenced = meter.counter(
    'fenced_writes_total',
    'Writes that were refused since another process has taken the store over.',
    {},
  )
  fenced.expect('')
  const commits = meter.plainHistogram(
    'store_commit_duration_seconds',
    'How long commits of the store took, until they were on disk.',
    COMMIT,
  )
  let accepts: boolean | null = null
  meter.gauge('store_accepts_writes', '1 when the store took the last write, 0 when it did not.', () =>
    accepts === null ? null : Number(accepts),
  )
  return {
    commit(seconds) {
      accepts = true
      commits(seconds)
    },
    storeRefused(reason) {
      accepts = false
      refused.add(reason)
      if (reason === 'fenced') fenced.add('')
    },
  }
}
