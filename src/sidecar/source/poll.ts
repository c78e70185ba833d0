import type { Subscriber } from '../../core/bus.ts'
import type { Hint } from '../../core/hint.ts'
import type { ChannelStatus, Observer } from '../../core/observer.ts'
import type { Service } from '../../core/ports.ts'
import type { Clock, Log, Timer } from '../../std/ports.ts'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { sinceOf } from './outage.ts'

export interface PollSource extends Required<Pick<Subscriber, 'swept'>> {
  start(): void
  stop(): void
  status(): ChannelStatus
}

/**
 * Polling requests reads on two timers: often of sessions that are not idle, seldom of all. The reconciler makes the
 * reads, within the same limits as those of all other hints.
 */
export function createPoll(options: {
  /** Milliseconds. */
  interval: number
  sweep: number
  hint: (hints: readonly Hint[]) => Promise<void>
  service: Pick<Service, 'authorized' | 'onAuthorization'>
  observer: Observer
  clock: Clock
  log: Log
}): PollSource {
  const { service, clock, log } = options
  let timers: Timer[] = []
  let status: ChannelStatus = {
    state: 'connecting',
    since: clock.now(),
    lastError: null,
    lastEventAt: null,
    lastSeq: null,
  }

  const become = (change: Partial<ChannelStatus> & Pick<ChannelStatus, 'state'>): void => {
    status = { ...status, since: sinceOf(status, change.state, clock.now()), ...change }
    options.observer.channel('poll', status)
  }

  // With `polling.interval: 1s` and a full disk, each second had a line with a stack trace.
  const logRefusal = createThrottledLog<unknown>(clock, (times, error) =>
    log.error({ err: error, times }, 'poll: the request for a read could not be stored'),
  )

  const every = (ms: number, slot: number, whole: boolean): void => {
    timers[slot] = clock.after(ms, () => {
      const at = clock.now()
      options
        .hint([{ sessionId: null, channel: 'poll', at, scope: whole ? 'turns' : 'session', delay: 0 }])
        .catch(logRefusal)
      every(ms, slot, whole)
    })
  }

  /** When the service began to reject our token; null: it does not. */
  let rejectedAt: number | null = null
  service.onAuthorization((authorized) => void (rejectedAt = authorized ? null : clock.now()))

  return {
    start() {
      options.observer.channel('poll', status)
      every(options.interval, 0, false)
      every(options.sweep, 1, true)
    },
    stop() {
      for (const timer of timers) timer.cancel()
      timers = []
      become({ state: 'disabled' })
    },
    swept(problem) {
      if (timers.length === 0) return
      if (problem === null) become({ state: 'live', lastError: null, lastEventAt: clock.now() })
      else become({ state: 'waiting', lastError: problem })
    },
    status() {
      if (status.state === 'disabled' || service.authorized()) return status
      return {
        ...status,
        since: rejectedAt ?? status.since,
        state: 'stopped',
        lastError: 'the token was rejected',
      }
    },
  }
}
