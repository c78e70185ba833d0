import type { Clock } from './ports.ts'

/** Milliseconds between two lines about the same thing: a peer that can cause log lines must not fill the disk. */
const REST = 10_000

/** Calls `report` at most once in an interval. `times`: the number of occurrences since the last call, counted by `more`. */
export function createThrottledLog<What = void>(
  clock: Pick<Clock, 'steady'>,
  report: (times: number, what: What) => void,
): (what: What, more?: number) => void {
  let times = 0
  let silentUntil = -Infinity
  return (what, more = 1) => {
    times += more
    const now = clock.steady()
    if (now < silentUntil) return
    silentUntil = now + REST
    report(times, what)
    times = 0
  }
}
