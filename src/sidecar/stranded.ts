import type { Log } from '../core/ports.ts'
import type { StoreReader } from '../core/store.ts'

/**
 * A handler that was taken out of the configuration, or has another name now, is still owed what it was owed: nothing of
 * it is dropped, and nothing of it is sent. Said at each start.
 */
export async function warnOfStranded(
  store: Pick<StoreReader, 'counts'>,
  configured: readonly { name: string }[],
  log: Log,
): Promise<void> {
  const { deliveries } = await store.counts()
  for (const [handler, { pending }] of Object.entries(deliveries)) {
    if (pending === 0 || configured.some(({ name }) => name === handler)) continue
    log.warn(
      { handler, pending },
      'deliveries wait for a handler that is not configured: they are sent when one has its name again',
    )
  }
}
