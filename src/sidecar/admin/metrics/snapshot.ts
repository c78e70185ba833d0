import { messageOf } from '../../../std/errors.ts'
import type { Clock, Log } from '../../../std/ports.ts'
import type { StoreCounts } from '../../../core/counts.ts'
import type { HandlerRecord, StoreReader } from '../../../core/store-reader.ts'

export interface Snapshot {
  counts: StoreCounts
  handlers: HandlerRecord[]
}

/** Several gauges and scrapers share one read of the store for this long, milliseconds. */
const FRESH = 1000

/**
 * Reads the counts of the store, at most once a second. null when the store cannot be read: the other metrics are
 * served without it.
 */
export function createSnapshot(options: {
  store: () => Pick<StoreReader, 'counts' | 'handlers'>
  clock: Pick<Clock, 'steady'>
  log: Log
}): () => Promise<Snapshot | null> {
  const { store, clock, log } = options
  let taken: Promise<Snapshot | null> = Promise.resolve(null)
  let takenAt = -Infinity

  const take = async (): Promise<Snapshot | null> => {
    try {
      const [counts, handlers] = await Promise.all([store().counts(), store().handlers()])
      return { counts, handlers }
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'metrics: the store could not be read')
      return null
    }
  }

  return () => {
    const now = clock.steady()
    if (now - takenAt >= FRESH) {
      takenAt = now
      taken = take()
    }
    return taken
  }
}
