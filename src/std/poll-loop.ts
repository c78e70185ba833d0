import type { Clock, Timer } from './ports.ts'

/** A wake makes work prompt; this look, without one, makes it certain. Milliseconds. */
const IDLE_LOOK = 5000

/** A loop that takes what is due whenever it is woken, and when the clock says so. Never two passes at once. */
export interface PollLoop {
  start(): void
  stop(): void
  wake(): void
  readonly running: boolean
}

export function createPollLoop(options: {
  clock: Clock
  /** Takes what is due. */
  pass: () => Promise<void>
  /** Milliseconds until there is something to take; null when nothing is known to come. */
  next: () => Promise<number | null>
  onError: (error: unknown) => void
}): PollLoop {
  const { clock, pass, next, onError } = options
  let running = false
  let passing = false
  let again = false
  let timer: Timer | null = null

  const run = async (): Promise<void> => {
    if (passing) {
      again = true
      return
    }
    passing = true
    timer?.cancel()
    let wait = IDLE_LOOK
    try {
      do {
        again = false
        await pass()
      } while (again && running)
      // What outlives the stop finds the store closed.
      const due = running ? await next() : null
      if (due !== null) wait = Math.max(1, Math.min(IDLE_LOOK, due))
    } catch (error) {
      if (running) onError(error)
    }
    passing = false
    if (!running) return
    if (again) void run()
    else timer = clock.after(wait, () => void run())
  }

  return {
    start() {
      running = true
      void run()
    },
    stop() {
      running = false
      timer?.cancel()
    },
    wake() {
      if (running) void run()
    },
    get running() {
      return running
    },
  }
}
