import { ServiceError } from '../core/errors.ts'
import type { Ids } from './discovery/parameters.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

/** Deletes by id. A 404 after an attempt whose reply was lost means that this attempt deleted it. */
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
