import type { Clock, Timer } from '../std/ports.ts'

/** The longest wait of Node's timers, milliseconds; a longer one would end at once. */
const LONGEST = 2 ** 31 - 1

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
