import { ServiceError } from '../core/errors.ts'
import type { Operation } from './call.ts'
import { sleep } from './transport/requester.ts'
import type { Transport } from './transport.ts'

/** The factor of each wait to the previous one, and the maximum as a multiple of the first. */
const SLOWER = 1.5
const SLOWEST = 10
/** How long the service may be unreachable meanwhile, milliseconds. */
const OUTAGE = 300_000

/** The time limit in place of none, milliseconds: longer than any caller waits. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER

/**
 * Calls `look` repeatedly until it finds something. `hurry` begins with short waits again. @param interval milliseconds
 * of the first wait @throws {ServiceError} that is permanent, or lasted too long.
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

/** Errors without an answer that a later attempt does not fix. */
export const FINAL: ReadonlySet<string> = new Set([
  'aborted',
  'stopped',
  'timeout',
  'route_unknown',
  'request_too_large',
  'not_delivered',
  'run_not_started',
])
