const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Milliseconds. */
const ECHO = 1000

/** What `close-with-grace` leaves to `onSignals`. */
export const LEFT_OUT = [...SIGNALS]

/**
 * Ctrl-C on `npm start` comes twice: the terminal sends it to this process, and npm passes it on. So the same signal within a
 * second counts once. @returns what ends this, if no signal came.
 */
export function onSignals(handle: {
  first: () => void
  second: (signal: NodeJS.Signals) => void
}): () => void {
  let earlier: { signal: NodeJS.Signals; at: number } | null = null
  const heard = (signal: NodeJS.Signals): void => {
    const at = performance.now()
    if (earlier === null) {
      earlier = { signal, at }
      handle.first()
    } else if (signal !== earlier.signal || at - earlier.at > ECHO) handle.second(signal)
  }
  for (const signal of SIGNALS) process.on(signal, heard)
  return () => {
    // After a signal they stay: its echo would end a process without a listener.
    if (earlier === null) for (const signal of SIGNALS) process.off(signal, heard)
  }
}
