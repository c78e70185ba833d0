import closeWithGrace from 'close-with-grace'
import { reportFailure } from './failure.ts'
import type { Terminal } from './terminal.ts'

/** Milliseconds: longer than a sidecar waits for requests under way when it stops. */
const GRACE = 25_000

/**
 * Releases what a command holds: at its end, on Ctrl-C or SIGTERM, and on an error that nothing caught. The error is reported.
 * A second signal, or the end of the grace period, ends the process at once.
 */
export function closeAtEnd(stack: AsyncDisposableStack, terminal: Terminal): void {
  const closing = closeWithGrace({ delay: GRACE, logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await stack.disposeAsync()
  })
  stack.defer(() => closing.uninstall())
}
