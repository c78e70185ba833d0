import type { StatusReport } from './admin/routes/status.ts'
import type { Observer } from '../core/observer.ts'
import type { Clock } from '../std/ports.ts'

/** Milliseconds that are counted together, and how many of these are kept. */
const MINUTE = 60_000
const MINUTES = 60

type Minute = StatusReport['throughput'][number]

/** What came and went in each minute of the last hour. */
export interface Throughput {
  observer: Partial<Observer>
  report(): Minute[]
}

export function createThroughput(clock: Pick<Clock, 'now'>): Throughput {
  const minutes: Minute[] = []
  /** The current minute; those in which nothing happened are filled in, so that a picture of them is true to time. */
  const current = (): Minute => {
    const at = Math.floor(clock.now() / MINUTE) * MINUTE
    const last = minutes.at(-1)
    // A wall clock that was put back counts on in the last minute that there was.
    if (last !== undefined && at <= last.at) return last
    const from = last === undefined ? at : Math.max(last.at + MINUTE, at - (MINUTES - 1) * MINUTE)
    let minute = emptyMinute(from)
    minutes.push(minute)
    for (let next = from + MINUTE; next <= at; next += MINUTE) minutes.push((minute = emptyMinute(next)))
    minutes.splice(0, minutes.length - MINUTES)
    return minute
  }
  return {
    observer: {
      fact: () => void current().facts++,
      callback({ outcome }) {
        if (outcome === 'delivered') current().delivered++
        else current().failed++
      },
      call: () => void current().calls++,
    },
    report() {
      current()
      return minutes.map((minute) => ({ ...minute }))
    },
  }
}

function emptyMinute(at: number): Minute {
  return { at, facts: 0, delivered: 0, failed: 0, calls: 0 }
}
