import closeWithGrace from 'close-with-grace'
import { reportFailure } from './failure.ts'
import { LEFT_OUT, onSignals } from './signals.ts'
import type { Terminal } from './terminal.ts'

/** Milliseconds: longer than a sidecar waits for requests under way when it stops. Kubernetes kills after thirty seconds. */
const GRACE = 25_000

/**
 * Calls `close` on Ctrl-C or SIGTERM, and on an error that nothing caught, which is reported; then the process ends.
 * A second signal, or the end of the grace period, ends the process at once. @returns a function that removes the
 * listeners.
 */
export function closeOnSignal(terminal: Terminal, close: (signalled: boolean) => Promise<void>): () => void {
  const say = (text: unknown): void => terminal.err(`${String(text)}\n`)
  let isClosing = false
  const closing = closeWithGrace(
    { delay: GRACE, logger: { error: say }, skip: LEFT_OUT },
    async ({ err }) => {
      isClosing = true
      if (err !== undefined) reportFailure(err, terminal)
      await close(err === undefined)
    },
  )
  const exit = (signal: NodeJS.Signals): void => {
    say(`second ${signal}, exiting`)
    process.exit(1)
  }
  const offSignals = onSignals({
    // An error that nothing caught may have started the stop already: then the first signal counts as the second.
    first: (signal) => (isClosing ? exit(signal) : closing.close()),
    second: exit,
  })
  return () => {
    closing.uninstall()
    offSignals()
  }
}

/**
 * Disposes of `stack` on a signal or an uncaught error, as `closeOnSignal` does. When the command disposes of `stack`
 * itself, the listeners are removed. `interrupted`: the exit code after a signal; a command that was to reach an end did not.
 */
export function closeAtEnd(stack: AsyncDisposableStack, terminal: Terminal, interrupted: 0 | 1 = 0): void {
  const close = async (signalled: boolean): Promise<void> => {
    await stack.disposeAsync()
    if (signalled) process.exit(interrupted)
  }
  stack.defer(closeOnSignal(terminal, close))
}
