import { closeOnSignal } from './closing.ts'
import { growUnderLoad, keepHeapSmall } from './heap.ts'
import type { Context } from './context.ts'
import { StoreError } from '../core/store-error.ts'
import { reportFailure } from './failure.ts'
import { offerOwnPackage } from './own-package.ts'

/**
 * Runs the sidecar until a signal. SIGTERM, SIGINT or SIGHUP: stop claiming, finish the work under way,
 * exit 0. A second signal, or the end of the grace period, exits at once with 1. An unhandled
 * rejection also exits with 1, after a last line in the log, and so does a lost store.
 */
export async function run({ terminal, env }: Context, options: { config: string }): Promise<number> {
  keepHeapSmall()
  offerOwnPackage()
  const { createSidecar } = await import('../sidecar/sidecar.ts')
  const sidecar = await createSidecar({ config: options.config, env })
  let stopping = false
  /** Why the sidecar cannot continue. It decides the exit code, even if a signal comes during the stop. */
  let failure: unknown = null
  const uninstall = closeOnSignal(terminal, async (signalled) => {
    stopping = signalled
    await sidecar.stop()
    if (failure !== null) process.exit(reportFailure(failure, terminal))
  })
  try {
    await sidecar.start()
    growUnderLoad()
  } catch (error) {
    // The sidecar waited for a database that another sidecar uses, and was stopped meanwhile.
    const isStopped = stopping && error instanceof StoreError && error.kind === 'closed'
    if (!isStopped) failure = error
    await sidecar.stop()
    uninstall()
    if (isStopped) return 0
    throw error
  }
  const error = await sidecar.failed
  failure = error
  await sidecar.stop()
  uninstall()
  throw error
}
