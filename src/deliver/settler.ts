import type { Settlement } from '../core/delivery.ts'
import type { Clock } from '../core/ports.ts'
import type { Store } from '../core/store.ts'

/**
 * How long what became of an attempt may wait to share a commit with others, milliseconds. A crash in between costs a
 * repeat under the same id.
 */
const DELAY = 20
/** From so many on they are written at once. */
const ENOUGH = 512

/** Writes what became of attempts, many in one commit. */
export interface Settler {
  /** Settles once it is durable. */
  add(settlement: Settlement): Promise<void>
}

export function createSettler(store: Pick<Store, 'settle'>, clock: Clock): Settler {
  let batch: Settlement[] = []
  let promise: Promise<void> | null = null
  let flush: () => void = () => undefined

  const open = (): Promise<void> => {
    const opened = new Promise<void>((resolve, reject) => {
      const timer = clock.after(DELAY, () => flush())
      flush = () => {
        timer.cancel()
        const settlements = batch
        batch = []
        promise = null
        store.settle(settlements).then(resolve, reject)
      }
    })
    // Awaited by each lane before it is given back; marked here so that a failure meanwhile does not count as forgotten.
    opened.catch(() => undefined)
    return opened
  }

  return {
    add(settlement) {
      batch.push(settlement)
      const shared = (promise ??= open())
      if (batch.length >= ENOUGH) flush()
      return shared
    },
  }
}
