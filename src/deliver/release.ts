import type { Lane } from '../core/delivery.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { Store } from '../core/store.ts'

/** A wait that could not be stored is tried to be stored again so much later, milliseconds. */
const AGAIN = 5000

/** Gives lanes back to the store. */
export interface Releaser {
  /**
   * `dueAt` (steady milliseconds) puts the lane off. Where that cannot be stored the lane stays claimed until it can, or
   * until then: nobody takes it before its time.
   */
  release(lane: Lane, dueAt: number | undefined): Promise<void>
  /** Nobody takes lanes any more: what could not be stored is tried once more and then let go. */
  stop(): void
}

export function createReleaser(options: {
  handler: string
  store: Pick<Store, 'releaseLane'>
  clock: Clock
  log: Log
}): Releaser {
  const { handler, store, clock, log } = options
  const holding = new Set<() => void>()
  let stopped = false

  const hold = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel()
        holding.delete(wake)
        resolve()
      }
      const timer = clock.after(ms, wake)
      holding.add(wake)
    })

  /** @returns whether it is stored. */
  const putOff = async (lane: Lane, dueAt: number): Promise<boolean> => {
    try {
      await store.releaseLane(lane, dueAt)
      return true
    } catch (error) {
      log.error({ handler, lane: lane.key, err: error }, 'deliver: a lane could not be put off; it is held')
      return false
    }
  }

  return {
    async release(lane, dueAt) {
      while (dueAt !== undefined) {
        if (await putOff(lane, dueAt)) return
        const left = dueAt - clock.steady()
        if (left <= 0 || stopped) break
        await hold(Math.min(left, AGAIN))
      }
      await store.releaseLane(lane)
    },
    stop() {
      stopped = true
      for (const wake of holding) wake()
    },
  }
}
