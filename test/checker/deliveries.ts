import type { DeliveryEntry, DeliveryStatus, Fault, Receipt } from './history.ts'

/** `deliveries.status` as the database has it. */
const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead']

export function statusOf(stored: number | null): DeliveryStatus | null {
  return stored === null ? null : (STATUSES[stored] ?? null)
}

/**
 * I1 and I10: every delivery has ended, and its handler says the same, or it is dead for a reason. `idle`: false while
 * deliveries may still be pending.
 */
export function deliveries(
  entries: readonly DeliveryEntry[],
  receiptOf: (handler: string, id: string) => Receipt,
  idle = true,
): Fault[] {
  return entries.flatMap(({ id, type, handler, status }): Fault[] => {
    const fault = (invariant: string, message: string): Fault[] => [
      { invariant, message: `${type} ${id} for ${handler} ${message}` },
    ]
    if (status === null) return fault('I1', 'has no delivery')
    if (status === 'pending') return idle ? fault('I1', 'is still pending') : []
    const { taken, heard, givenUp } = receiptOf(handler, id)
    if (status === 'dead')
      return givenUp ? [] : fault('I10', 'is dead without a verdict, and has attempts left')
    if (!taken) return fault('I1', 'counts as delivered and was never taken')
    return heard ? [] : fault('I1', 'counts as delivered and no answer that could be read said so')
  })
}
