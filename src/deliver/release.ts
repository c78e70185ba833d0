import type { Lane } from '../core/delivery.ts'
import type { Clock, Log, Timer } from '../core/ports.ts'
import type { Store } from '../core/store.ts'

/** A lane that could not be put off is held so long: a store that fails is not asked again at once. Milliseconds. */
const HELD = 5000

/** Gives lanes back to the store. */
export interface Releaser {
  /** `dueAt` (steady milliseconds) puts the lane off; a wait that its handler asked for is stored with the attempt already. */
  release(lane: Lane, dueAt: number | undefined): Promise<void>
  /** Nobody takes lanes any more. */
  stop(): void
}

export function createReleaser(options: {
  handler: string
  store: Pick<Store, 'releaseLane'>
  clock: Clock
  log: Log
}): Releaser {
  const { handler, store, clock, log } = options
  const holding = new Set<Timer>()
  let stopped = false

  const hold = (lane: Lane): void => {
    const timer = clock.after(HELD, () => {
      holding.delete(timer)
      void store.releaseLane(lane)
    })
    holding.add(timer)
  }

  return {
    async release(lane, dueAt) {
      try {
        await store.releaseLane(lane, dueAt)
      } catch (error) {
        log.error({ handler, lane: lane.key, err: error }, 'deliver: a lane could not be put off; it is held')
        if (!stopped) hold(lane)
      }
    },
    stop() {
      stopped = true
      for (const timer of holding) timer.cancel()
      holding.clear()
    },
  }
}
