import type { Clock } from './ports.ts'

/** Waits `ms`, or until `signal` is aborted, which the caller checks afterwards. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const end = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.after(ms, end)
    signal.addEventListener('abort', end)
  })
}
