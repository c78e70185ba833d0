import type { Observer, StoreRefusal } from '../../core/observer.ts'
import { COMMIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

const REFUSALS: readonly StoreRefusal[] = ['full', 'busy', 'damaged', 'other']

/** What is written to the store, and what it does not take. */
export function storeMetrics(meter: Meter): Pick<Observer, 'commit' | 'storeRefused'> {
  const refused = meter.counter('store_writes_refused_total', 'Writes that the store did not take, by why.', {
    reason: new LabelValues(REFUSALS),
  })
  for (const reason of REFUSALS) refused.expect(reason)
  return {
    commit: meter.plainHistogram(
      'store_commit_duration_seconds',
      'How long commits of the store took, until they were on disk.',
      COMMIT,
    ),
    storeRefused: (reason) => refused.add(reason),
  }
}
