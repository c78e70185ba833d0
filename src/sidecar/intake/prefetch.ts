import type { Subscriber } from '../../core/bus.ts'
import type { Hint } from '../../core/hint.ts'
import type { Service } from '../../core/ports.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Session } from '../../core/resource.ts'
import { readSession } from './look.ts'

/** Readings ahead at once; with more to read, the list may be the cheaper way. */
const AT_ONCE = 2
/** One that nobody came for in this time is old news, milliseconds. */
const FRESH = 1000
/** A session that such a reading finds gone is read so much later, milliseconds. */
const GONE_DELAY = 100

/**
 * Readings that begin while their hint is still on its way to disk: what is urgent waits for the longer of the two, not
 * for their sum. A reading answers only hints that were there before it began, so a later hint drops it.
 */
export interface Ahead extends Required<Pick<Subscriber, 'hinted' | 'looked'>> {
  /** The reading of a session that is under way or done; nobody else gets it. null in it: the session is gone. */
  take(sessionId: string): Promise<Session | null> | undefined
}

interface ReadingAhead {
  session: Promise<Session | null>
  /** Steady milliseconds. */
  begunAt: number
  taken: boolean
}

export function createAhead(options: {
  clock: Clock
  service: Service
  hint: (hints: readonly Hint[]) => Promise<void>
  log: Log
}): Ahead {
  const { clock, service, hint, log } = options
  const readings = new Map<string, ReadingAhead>()
  /** Before the first look nobody can tell what is new, and dirty sessions are not read. */
  let looked = false

  const isOld = ({ begunAt }: ReadingAhead): boolean => clock.steady() - begunAt > FRESH

  /** Not at once: the hint begins no reading ahead of its own. */
  const noteGone = (sessionId: string): void => {
    hint([{ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: GONE_DELAY }]).catch(
      (error: unknown) => log.error({ err: error }, 'reconcile: a session that is gone could not be noted'),
    )
  }

  const begin = (sessionId: string): void => {
    for (const [id, reading] of readings) if (isOld(reading)) readings.delete(id)
    if (readings.size >= AT_ONCE || !looked || !service.authorized()) return
    const reading = { session: readSession(service, sessionId), begunAt: clock.steady(), taken: false }
    readings.set(sessionId, reading)
    reading.session.then(
      (session) => {
        // No news tells of a session that is gone, and its hint may be done with already.
        if (session === null && !reading.taken) noteGone(sessionId)
      },
      // The reader that takes it sees its failure; one that is not taken may fail unseen.
      () => undefined,
    )
  }

  return {
    looked(done) {
      looked = done
    },
    hinted(_, hints) {
      for (const { sessionId } of hints) if (sessionId !== null) readings.delete(sessionId)
      const urgent = hints.filter(({ delay, sessionId }) => delay === 0 && sessionId !== null)
      if (urgent.length > AT_ONCE) return
      for (const { sessionId } of urgent) if (sessionId !== null) begin(sessionId)
    },
    take(sessionId) {
      const reading = readings.get(sessionId)
      if (reading === undefined || isOld(reading)) return undefined
      readings.delete(sessionId)
      reading.taken = true
      return reading.session
    },
  }
}
