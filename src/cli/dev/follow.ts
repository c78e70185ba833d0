import closeWithGrace from 'close-with-grace'
import type { ConfigInput } from '../../sidecar/config/schema.ts'
import type { Observer } from '../../core/observer.ts'
import { createSidecar, type Sidecar } from '../../sidecar/sidecar.ts'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { observer, runObserver } from './observe.ts'
import { configOf, type OwnApp } from './own-app.ts'
import type { DevRecord } from './record.ts'
import type { AppShow } from './show-app.ts'

/**
 * Starts a sidecar whose requests go to the user's own app, and shows each of them. `stack` stops it, also on Ctrl-C.
 */
export async function follow(
  { terminal, env }: Context,
  stack: AsyncDisposableStack,
  app: OwnApp,
  {
    config,
    show,
    observers = [],
  }: { config: Omit<ConfigInput, 'handlers' | 'tools'>; show: AppShow; observers?: Partial<Observer>[] },
): Promise<Sidecar> {
  const sidecar = await createSidecar({ config: { ...config, ...configOf(app) }, env })
  stack.defer(() => sidecar.stop())
  const print = (record: DevRecord): void => show.record(record)
  const titles = (sessionId: string | null): string => sessionId ?? '(all)'
  for (const one of [observer(print, titles), runObserver(print, titles), ...observers]) sidecar.observe(one)
  // Longer than the stop waits for requests to the app.
  const closing = closeWithGrace({ delay: 25_000, logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await stack.disposeAsync()
  })
  stack.defer(() => closing.uninstall())
  await sidecar.start()
  return sidecar
}
