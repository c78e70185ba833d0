import { ServiceError } from '../core/errors.ts'
import type { Ids } from './discovery/fill.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

/** Deletes by id. If the reply of an attempt was lost and the next one gets 404, the first one deleted it. */
export function remove(
  transport: Transport,
  name: WholeName,
  ids: Ids,
  options: CallOptions | undefined,
): Promise<void> {
  return transport.within(name, options, async (operation) => {
    let repeated = false
    const onRepeat = (): void => void (repeated = true)
    try {
      await transport.send(operation, { ids, repeatable: true, onRepeat })
    } catch (error) {
      if (!(repeated && error instanceof ServiceError && error.notFound)) throw error
    }
  })
}
