import type { Subscriber } from '../../core/bus.ts'
import type { Clock } from '../../std/ports.ts'
import type { Session } from '../../core/resource.ts'

/** Readings ahead at once; with more to read, the list may be the cheaper way. */
const AT_ONCE = 2
/** One that nobody came for in this time is old news, milliseconds. */
const FRESH = 1000

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
  /** The service takes our token. */
  authorized: () => boolean
  read: (sessionId: string) => Promise<Session | null>
  /** A reading found the session gone, and nobody has come for it yet. */
  onGone: (sessionId: string) => void
}): Ahead {
  const { clock } = options
  const readings = new Map<string, ReadingAhead>()
  /** Before the first look nobody can tell what is new, and dirty sessions are not read. */
  let looked = false

  const isOld = ({ begunAt }: ReadingAhead): boolean => clock.steady() - begunAt > FRESH

  const begin = (sessionId: string): void => {
    for (const [id, reading] of readings) if (isOld(reading)) readings.delete(id)
    if (readings.size >= AT_ONCE || !looked || !options.authorized()) return
    const reading = { session: options.read(sessionId), begunAt: clock.steady(), taken: false }
    readings.set(sessionId, reading)
    reading.session.then(
      (session) => {
        // No news tells of a session that is gone, and its hint may be done with already.
        if (session === null && !reading.taken) options.onGone(sessionId)
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
