import type { Readiness } from './admin/probes.ts'
import type { StatusReport } from './admin/routes/status.ts'
import type { Observer } from '../core/observer.ts'
import type { Clock } from '../std/ports.ts'
import type { StoreError } from '../core/store-error.ts'
import { refusalOf } from './store.ts'

/** Whether the store takes what is written, as the last write found. */
export interface Writes {
  observer: Pick<Observer, 'commit' | 'storeRefused'>
  report(): StatusReport['store']
  /** The store is another process's, or its files are gone: no later write changes that. */
  lose(error: StoreError): void
  /** For `/readyz`. A store that refuses makes us no less ready, a store that is lost does. */
  check(): Readiness['checks'][number]
}

export function createWrites(clock: Pick<Clock, 'now'>): Writes {
  let lost: StoreError | null = null
  let last: StatusReport['store'] = { state: 'accepting', since: clock.now(), reason: null }
  return {
    observer: {
      commit() {
        if (lost === null && last.state !== 'accepting')
          last = { state: 'accepting', since: clock.now(), reason: null }
      },
      storeRefused(reason) {
        if (lost !== null) return
        const since = last.state === 'refusing' ? last.since : clock.now()
        last = { state: 'refusing', since, reason }
      },
    },
    report: () => last,
    lose(error) {
      lost = error
      last = { state: 'refusing', since: clock.now(), reason: refusalOf(error) }
    },
    check() {
      if (lost !== null) return { name: 'store', ok: false, detail: lost.message }
      const { reason } = last
      const detail = reason === null ? {} : { detail: `it refuses writes (${reason})` }
      return { name: 'store', ok: true, ...detail }
    },
  }
}
