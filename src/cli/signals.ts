const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Milliseconds in which npm passes a signal on. */
const ECHO = 1000

/** The signals that `close-with-grace` must not handle, because `onSignals` does. */
export const LEFT_OUT = [...SIGNALS]

/**
 * Ctrl-C on `npm start` comes twice: the terminal sends it to this process, and npm passes it on. So under npm the
 * same signal within a second counts once. @returns a function that removes the listeners, unless a signal came.
 */
export function onSignals(handle: {
  first: (signal: NodeJS.Signals) => void
  second: (signal: NodeJS.Signals) => void
}): () => void {
  const echo = (process.env['npm_lifecycle_event'] ?? '') === '' ? 0 : ECHO
  let earlier: { signal: NodeJS.Signals; at: number } | null = null
  const heard = (signal: NodeJS.Signals): void => {
    const at = performance.now()
    if (earlier === null) {
      earlier = { signal, at }
      handle.first(signal)
    } else if (signal !== earlier.signal || at - earlier.at >= echo) handle.second(signal)
  }
  for (const signal of SIGNALS) process.on(signal, heard)
  return () => {
    // After a signal the listeners stay: without them, the same signal from npm would end the process.
    if (earlier === null) for (const signal of SIGNALS) process.off(signal, heard)
  }
}
