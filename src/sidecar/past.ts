import type { Log } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import type { StoreReader } from '../core/store-reader.ts'
import { checkpointIn } from './store/sqlite/inspect.ts'

/** Whom the store heard, by `service.base_url`. */
const HEARD = 'service'

/** Whether a database is known to be of a sidecar that follows another service. */
export function isOfAnother(file: string, baseUrl: string): boolean {
  const heard = checkpointIn(file, HEARD)
  return heard !== null && heard !== baseUrl
}

/** Warns about a store that does not fit the configuration: another service, or a backlog of a removed handler. */
export async function warnOfPast(
  store: Pick<Store, 'settings'> & { read: Pick<StoreReader, 'counts'> },
  { handlers, baseUrl }: { handlers: readonly { name: string }[]; baseUrl: string },
  log: Log,
): Promise<void> {
  const before = await store.settings.checkpoint(HEARD)
  if (before !== baseUrl) await store.settings.setCheckpoint(HEARD, baseUrl)
  if (before !== null && before !== baseUrl) {
    log.warn(
      { before, now: baseUrl },
      'store: it has sessions and a cursor from another service.base_url. If that is another service, stop, and set ' +
        'store.url to another file',
    )
  }
  const { deliveries } = await store.read.counts()
  for (const [handler, { pending }] of Object.entries(deliveries)) {
    if (pending === 0 || handlers.some(({ name }) => name === handler)) continue
    log.warn(
      { handler, pending },
      'store: deliveries wait for a handler that is not configured: they are sent once one has its name again',
    )
  }
}
