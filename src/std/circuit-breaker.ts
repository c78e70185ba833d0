import { backoff } from './backoff.ts'
import { createThrottledLog } from './throttled-log.ts'
import type { Clock, Log, Random } from './ports.ts'

/** Milliseconds. */
const WAIT = { base: 500, max: 5000 }

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
export function createCircuitBreaker(
  { clock, random, log }: { clock: Clock; random: Random; log: Log },
  message: string,
): Rest {
  let [until, count] = [0, 0]
  const logThrottled = createThrottledLog<unknown>(clock, (_times, error) =>
    log.error({ err: error }, message),
  )
  return {
    get until() {
      return until
    },
    get trying() {
      return count > 0
    },
    refused(error) {
      logThrottled(error)
      const now = clock.steady()
      // What was under way beside it is refused as well, and says nothing new.
      if (now >= until) until = now + backoff(WAIT, ++count, random, WAIT.base)
    },
    end() {
      ;[until, count] = [0, 0]
    },
  }
}
