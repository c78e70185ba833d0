import { backoff } from './backoff.ts'
import type { Clock, Log, Random } from './ports.ts'

/** Milliseconds. */
const WAIT = { base: 500, max: 5000 }
/** A store that goes on refusing is told of so often, milliseconds. */
const TOLD_EVERY = 10_000

/** While the store refuses writes nothing is begun of which nothing could be kept, but for a try now and then. */
export interface Rest {
  /** Steady milliseconds: nothing is begun before. */
  readonly until: number
  /** The store refused, and has taken nothing since: what is begun next is a try, and one is enough. */
  readonly trying: boolean
  refused(error: unknown): void
  /** The store has taken something. */
  end(): void
}

/** `message`: what the log says of it. */
export function createRest(
  { clock, random, log }: { clock: Clock; random: Random; log: Log },
  message: string,
): Rest {
  let [until, count, toldAt] = [0, 0, -Infinity]
  return {
    get until() {
      return until
    },
    get trying() {
      return count > 0
    },
    refused(error) {
      const now = clock.steady()
      if (now - toldAt >= TOLD_EVERY) {
        toldAt = now
        log.error({ err: error }, message)
      }
      // What was under way beside it is refused as well, and says nothing new.
      if (now >= until) until = now + backoff(WAIT, ++count, random, WAIT.base)
    },
    end() {
      ;[until, count] = [0, 0]
    },
  }
}
