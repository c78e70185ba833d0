import { backoff } from './backoff.ts'
import { createThrottledLog } from './throttled-log.ts'
import type { Clock, Log, Random } from './ports.ts'

/** Milliseconds. */
const WAIT = { base: 500, max: 5000 }

/** While the store refuses writes, no work begins whose result could not be stored. From time to time one trial begins. */
export interface Rest {
  /** Steady milliseconds: no work begins before. */
  readonly until: number
  /** The store refused a write, and no write has succeeded since: only one piece of work, the trial, may begin. */
  readonly trying: boolean
  refused(error: unknown): void
  /** A write succeeded. */
  end(): void
}

/** `message`: the log line. */
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
      // Writes that were under way are refused as well. They do not make the wait longer.
      if (now >= until) until = now + backoff(WAIT, ++count, random, WAIT.base)
    },
    end() {
      ;[until, count] = [0, 0]
    },
  }
}
