import { RENEWALS, type Observer } from '../../../core/observer.ts'
import type { Meter } from './meter.ts'

/** What this process owns, of a store that several may share. */
export function shardMetrics(meter: Meter) {
  let leads = true
  let owned: number | null = null
  meter.gauge('leader', '1 on the replica that reads the stream and the list of sessions.', () => leads)
  meter.gauge('shards_owned', 'How many of the 64 shards of sessions this replica owns.', () => owned)
  const renewals = meter.counter(
    'lease_renewals_total',
    'Renewals of the leases of this replica, by outcome. None with SQLite.',
    { outcome: RENEWALS },
  )
  return {
    /** Metrics of the whole store come from one replica. */
    leads: () => leads,
    observer: {
      shards(count, leading) {
        owned = count
        leads = leading
      },
      leaseRenewed: (outcome) => renewals.add(outcome),
    } satisfies Partial<Observer>,
  }
}
