import type { Clock } from './ports.ts'

/**
 * Milliseconds between two lines about the same thing: a peer that can cause log lines must not
 * fill the disk.
 */
const REST = 10_000

/** Has `tell` called of what happens, seldom; `times`: how often it has happened since it was told, `more` at a time. */
export function createThrottledLog<What = void>(
  clock: Pick<Clock, 'steady'>,
  tell: (times: number, what: What) => void,
): (what: What, more?: number) => void {
  let times = 0
  let silentUntil = -Infinity
  return (what, more = 1) => {
    times += more
    const now = clock.steady()
    if (now < silentUntil) return
    silentUntil = now + REST
    tell(times, what)
    times = 0
  }
}
