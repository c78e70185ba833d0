import { uptime } from 'node:os'
import type { Clock, Timer } from '../std/ports.ts'

/** The longest wait of Node's timers, milliseconds; a longer one would end at once. */
const LONGEST = 2 ** 31 - 1

/** A timer that fires later than this shows that the event loop stood still, milliseconds. */
export const STALLED = 100

/** After such a step of the wall clock, the machine may have been suspended, milliseconds. */
const STEP = 1000

/** What a machine knows of the time, milliseconds. */
interface Times {
  wall: () => number
  /** Stands still while the machine is suspended. */
  running: () => number
  /** Goes on while the machine is suspended. */
  booted: () => number
}

/**
 * A laptop is closed for a minute. The clock of `performance` stood still, so a replica would take its leases for valid that
 * another one has taken over. When the wall clock has jumped ahead, the time since the boot of the machine shows whether it was
 * suspended, or only the wall clock was set.
 */
export function steadyTime({ wall, running, booted }: Times): () => number {
  const before = booted() - running()
  let ahead = wall() - running()
  let suspended = 0
  return () => {
    const now = running()
    const step = wall() - now - ahead
    ahead += step
    if (step > STEP) suspended = Math.max(suspended, booted() - now - before)
    return now + suspended
  }
}

const steady = steadyTime({
  wall: () => Date.now(),
  running: () => performance.now(),
  booted,
})

/** A sandbox may refuse the question: then no suspension is known. */
function booted(): number {
  try {
    return uptime() * 1000
  } catch {
    return performance.now()
  }
}

/** The clock of the machine. */
export function systemClock(): Clock {
  const { timeOrigin } = performance
  return {
    now: () => Date.now(),
    steady: () => timeOrigin + steady(),
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
