import type { Clock, Timer } from './ports.ts'

/**
 * Milliseconds between passes without a wake. A wake makes work prompt; these passes ensure that
 * work is done even if a wake is lost.
 */
const IDLE_LOOK = 5000

/** A loop that processes due work when it is woken, and when the next work is due. Never two passes at once. */
export interface PollLoop {
  start(): void
  stop(): void
  wake(): void
  readonly running: boolean
}

export function createPollLoop(options: {
  clock: Clock
  /** Processes due work. */
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
      // A pass may end after the stop, when the store is closed.
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
