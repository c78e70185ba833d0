import type { Clock, Timer } from '../std/ports.ts'

/** The longest wait that Node's timers keep, milliseconds; a longer one would fire at once. */
const LONGEST = 2 ** 31 - 1

/** The clock of the machine. */
export function systemClock(): Clock {
  const { timeOrigin } = performance
  return {
    now: () => Date.now(),
    steady: () => timeOrigin + performance.now(),
    after,
    // After what this turn of the loop begins: the request of a prefetch was written only after the commit of its hint.
    soon: (run) => process.nextTick(setImmediate, run),
  }
}

function after(ms: number, run: () => void): Timer {
  let left = ms > 0 ? ms : 0
  let timeout: NodeJS.Timeout
  const next = (): void => {
    const wait = Math.min(left, LONGEST)
    left -= wait
    timeout = setTimeout(left > 0 ? next : run, wait)
  }
  next()
  return { cancel: () => clearTimeout(timeout) }
}
