import { RENEWALS, type Observer } from '../../../core/observer.ts'
import { LEASE } from '../../../core/shards.ts'
import type { Clock } from '../../../std/ports.ts'
import type { Meter } from './meter.ts'

/** What this process owns, of a store that several may share. */
export function shardMetrics(meter: Meter, clock: Pick<Clock, 'steady'>) {
  let leads = true
  let owned: number | null = null
  /** Steady milliseconds; null: nothing is renewed with SQLite. */
  let renewedAt: number | null = null
  /** While the database was unreachable, each replica showed what it had owned before, and no alert fired. */
  const isOver = (): boolean => renewedAt !== null && clock.steady() - renewedAt > LEASE
  meter.gauge(
    'leader',
    '1 on the replica that reads the stream and the list of sessions.',
    () => leads && !isOver(),
  )
  meter.gauge('shards_owned', 'How many of the 64 shards of sessions this replica owns.', () =>
    isOver() ? 0 : owned,
  )
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
      leaseRenewed(outcome) {
        renewals.add(outcome)
        if (outcome === 'renewed') renewedAt = clock.steady()
      },
    } satisfies Partial<Observer>,
  }
}
