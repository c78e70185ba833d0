import type { Clock, Timer } from '../std/ports.ts'

/** The longest wait of Node's timers, milliseconds; a longer one would end at once. */
const LONGEST = 2 ** 31 - 1

/** A timer that fires later than this shows that the event loop stood still, milliseconds. */
export const STALLED = 100

/** The clock of the machine. */
export function systemClock(): Clock {
  const { timeOrigin } = performance
  return {
    now: () => Date.now(),
    steady: () => timeOrigin + performance.now(),
    after,
    // After everything that this pass of the event loop starts. Otherwise the request of a prefetch would be written
    // only after the commit of its hint.
    soon: (run, turn) => (turn === 'same' ? process.nextTick(run) : process.nextTick(setImmediate, run)),
  }
}

/**
 * A slow fsync may stop the event loop for seconds. What came meanwhile, such as the answer that a time limit waits for, is read
 * before a timer that is late for this reason.
 */
function after(ms: number, run: () => void): Timer {
  const due = performance.now() + ms
  let left = ms > 0 ? ms : 0
  let timeout: NodeJS.Timeout
  let immediate: NodeJS.Immediate | undefined
  const fire = (): void => {
    if (performance.now() - due > STALLED) immediate = setImmediate(run)
    else run()
  }
  const next = (): void => {
    const wait = Math.min(left, LONGEST)
    left -= wait
    timeout = setTimeout(left > 0 ? next : fire, wait)
  }
  next()
  return {
    cancel: () => {
      clearTimeout(timeout)
      clearImmediate(immediate)
    },
  }
}
