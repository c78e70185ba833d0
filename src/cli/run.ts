import closeWithGrace from 'close-with-grace'
import { growUnderLoad, keepHeapSmall } from './heap.ts'
import type { Context } from './context.ts'
import { StoreError } from '../core/store-error.ts'
import { reportFailure } from './failure.ts'
import { offerOwnPackage } from './own-package.ts'

/** Milliseconds to drain after a signal. Kubernetes kills after thirty seconds. */
const GRACE = 25_000
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Runs the sidecar until a signal. SIGTERM or SIGINT: stop claiming, finish the work under way,
 * exit 0. A second signal, or the end of the grace period, exits at once with 1. An unhandled
 * rejection also exits with 1, after a last line in the log, and so does a lost store.
 */
export async function run({ terminal, env }: Context, options: { config: string }): Promise<number> {
  keepHeapSmall()
  offerOwnPackage()
  const { createSidecar } = await import('../sidecar/sidecar.ts')
  const sidecar = await createSidecar({ config: options.config, env })
  // A signal without a listener would end the process without a message.
  for (const signal of SIGNALS) process.on(signal, ignore)
  let stopping = false
  const closing = closeWithGrace(
    { delay: GRACE, logger: { error: (text) => terminal.err(`${String(text)}\n`) } },
    async ({ err }) => {
      if (err !== undefined) reportFailure(err, terminal)
      else stopping = true
      await sidecar.stop()
    },
  )
  try {
    await sidecar.start()
    growUnderLoad()
  } catch (error) {
    for (const signal of SIGNALS) process.off(signal, ignore)
    closing.uninstall()
    await sidecar.stop()
    // It waited for a database that another sidecar holds, and was stopped.
    if (stopping && error instanceof StoreError && error.kind === 'closed') return 0
    throw error
  }
  const error = await sidecar.failed
  closing.uninstall()
  await sidecar.stop()
  throw error
}

function ignore(): void {}
