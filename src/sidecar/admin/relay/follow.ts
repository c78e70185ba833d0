import type { StoreReader } from '../../../core/store-reader.ts'
import type { StoredFact } from '../../../core/fact.ts'
import { messageOf } from '../../../std/errors.ts'
import type { Log } from '../../../std/ports.ts'
import type { Hub } from './hub.ts'

/**
 * With several replicas, the log gets frames that no commit of this process reports. The follower reads them from the
 * log.
 */
export interface Follower {
  /** Whether such frames are, or were, written. From then on, all frames are read from the log. */
  readonly shared: boolean
  share(): void
  population(live: number): void
  /**
   * Publishes new frames of the log. Never rejects. The first look while there are readers begins after `before`: this
   * process has just written what follows, and a reader waits for it. Without `before`, it begins at the end of the
   * log.
   */
  look(before?: number): Promise<void>
}

export function createFollower(options: {
  hub: Pick<Hub, 'size' | 'lastPos'>
  store: () => Pick<StoreReader, 'frames' | 'facts'>
  publish: (frames: readonly StoredFact[]) => void
  log: Log
}): Follower {
  const { hub, store, publish, log } = options
  let shared = false
  /** The position up to which frames were published; null: there are no readers. */
  let pos: number | null = null
  let reading: Promise<void> | null = null
  let again = false

  const readOn = async (): Promise<void> => {
    if (hub.size === 0) {
      pos = null
      return
    }
    if (pos === null) {
      const { rows } = await store().facts({ limit: 1, order: 'desc' })
      // A commit of this process may have given a position meanwhile.
      pos ??= rows[0]?.pos ?? 0
    }
    for (;;) {
      const { frames, next, more } = await store().frames({ after: pos })
      if (frames.length > 0) publish(frames)
      pos = next
      if (!more) return
    }
  }

  const run = async (): Promise<void> => {
    try {
      do {
        again = false
        await readOn()
      } while (again)
    } catch (error) {
      log.warn({ err: messageOf(error) }, 'relay: new facts could not be read')
    } finally {
      reading = null
    }
  }

  const look = (before: number | null = null): Promise<void> => {
    if (hub.size > 0) pos ??= before
    again = true
    reading ??= run()
    return reading
  }

  const share = (): void => {
    if (shared) return
    shared = true
    // The readers have all frames up to the last one that was published without a look at the log.
    void look(hub.lastPos === 0 ? null : hub.lastPos)
  }

  return {
    get shared() {
      return shared
    },
    share,
    population(live) {
      if (live > 1) share()
    },
    look,
  }
}
