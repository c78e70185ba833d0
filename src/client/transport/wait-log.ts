import { createThrottledLog } from '../../std/throttled-log.ts'
import type { ServiceError } from '../../core/errors.ts'
import type { Clock, Log } from '../../std/ports.ts'
import { RETRY_AFTER_MAX } from '../../std/retry-after.ts'

/** A shorter wait is served within the patience of most requests, milliseconds: longer ones make requests fail. */
const LONG = 60_000

interface Refused {
  operation: string
  error: ServiceError
  /** What waits. */
  what: string
}

/** Logs until when requests wait because the service asked for it; seldom, since each request may be refused. */
export function createWaitLog(clock: Clock, log: Log): (refused: Refused) => void {
  const throttled = (level: 'info' | 'warn') =>
    createThrottledLog<Refused>(clock, (times, { operation, what, error }) => {
      const { code, status, requestId, retryAfter } = error
      const wait = retryAfter ?? 0
      const until = new Date(clock.now() + wait).toISOString()
      const cut = wait >= RETRY_AFTER_MAX ? ' (it asked for a day or more; a day is the most)' : ''
      log[level](
        { operation, code, status, requestId, until, times },
        `service: ${code}: ${what} until ${until}${cut}`,
      )
    })
  const short = throttled('info')
  const long = throttled('warn')
  return (refused) => ((refused.error.retryAfter ?? 0) < LONG ? short(refused) : long(refused))
}
