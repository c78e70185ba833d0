import { ServiceError } from '../core/errors.ts'
import type { Operation } from './call.ts'
import { sleep } from './transport/requester.ts'
import type { Transport } from './transport.ts'

/** Each wait is SLOWER times the previous one, and at most SLOWEST times the first. */
const SLOWER = 1.5
const SLOWEST = 10
/** Polling ends when the service has been unreachable for this long, milliseconds. */
const OUTAGE = 300_000

/** Stands for "no time limit", milliseconds. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER

/**
 * Calls `look` repeatedly until it finds something. `look` may call `hurry`: then the waits begin again with the
 * first.
 * @param interval milliseconds of the first wait
 * @throws {ServiceError} when a later attempt cannot succeed, or when the error lasts too long.
 */
export async function poll<T>(
  transport: Transport,
  operation: Operation,
  interval: number,
  look: (hurry: () => void) => Promise<T | null>,
): Promise<T> {
  const { clock } = transport
  let wait = interval
  let goodAt = clock.steady()
  for (;;) {
    try {
      await transport.renewToken()
      const found = await look(() => (wait = interval))
      if (found !== null) return found
      goodAt = clock.steady()
    } catch (error) {
      const passing = error instanceof ServiceError && error.transient && !FINAL.has(error.code)
      if (!passing || operation.signal.aborted || clock.steady() - goodAt > OUTAGE) throw error
    }
    await sleep(clock, wait, operation.signal)
    wait = Math.min(wait * SLOWER, interval * SLOWEST)
  }
}

/** Errors with status 0 that every further attempt would have, too. */
export const FINAL: ReadonlySet<string> = new Set([
  'aborted',
  'stopped',
  'timeout',
  'route_unknown',
  'request_too_large',
  'not_delivered',
  'run_not_started',
])
