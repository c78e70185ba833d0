import { ServiceError } from '../core/errors.ts'
import type { Ids } from './discovery/path.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

/** Deletes by id. When an attempt's reply was lost and a later one finds nothing, the first one did it. */
export function remove(
  transport: Transport,
  operation: WholeName,
  ids: Ids,
  options: CallOptions | undefined,
): Promise<void> {
  return transport.within(operation, options, async (errand) => {
    let repeated = false
    const onRepeat = (): void => void (repeated = true)
    try {
      await transport.send(errand, { ids, repeatable: true, onRepeat })
    } catch (error) {
      if (!(repeated && error instanceof ServiceError && error.notFound)) throw error
    }
  })
}
