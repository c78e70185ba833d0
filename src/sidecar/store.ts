import type { Config } from './config/config.ts'
import { strandedStore } from './config/store-folder.ts'
import { OperatorError } from '../std/errors.ts'
import type { Observer, StoreRefusal } from '../core/observer.ts'
import type { Clock, Log } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import { StoreError } from '../core/store-error.ts'
import { isOfAnother } from './past.ts'
import { openSqliteStore } from './store/sqlite/store.ts'

/** @throws {OperatorError} when the store cannot be used, or is of a kind that this version does not have. */
export function openStore(
  { store: { url }, service }: Config,
  ports: { clock: Clock; log: Log },
  observer: Observer,
  onLost: (error: StoreError) => void,
): Store {
  if (url.kind === 'postgres') {
    throw new OperatorError('store.url: this version keeps its store in SQLite; use sqlite:FILE', 2)
  }
  const stranded = strandedStore(url, (file) => isOfAnother(file, service.baseUrl))
  if (stranded !== null) throw new OperatorError(`store: ${stranded}`, 2)
  return openSqliteStore({
    path: url.path,
    ...ports,
    onLost,
    onCommit: observer.commit,
    onRefused: (error) => observer.storeRefused(refusalOf(error)),
    onDeadLettered: observer.deadLettered,
  })
}

export function refusalOf(error: unknown): StoreRefusal {
  return error instanceof StoreError && error.kind !== 'closed' ? error.kind : 'other'
}
