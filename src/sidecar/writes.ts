import type { Readiness } from '../admin/routes/probes.ts'
import type { StatusReport } from '../admin/routes/status.ts'
import type { Observer } from '../core/observer.ts'
import type { Clock } from '../core/ports.ts'

/** Whether the store takes what is written, as the last write found. */
export interface Writes {
  observer: Pick<Observer, 'commit' | 'storeRefused'>
  report(): StatusReport['store']
  /** For `/readyz`. A store that refuses makes us no less ready: nobody else could do better. */
  check(): Readiness['checks'][number]
}

export function createWrites(clock: Pick<Clock, 'now'>): Writes {
  let last: StatusReport['store'] = { state: 'accepting', since: clock.now(), reason: null }
  return {
    observer: {
      commit() {
        if (last.state !== 'accepting') last = { state: 'accepting', since: clock.now(), reason: null }
      },
      storeRefused(reason) {
        const since = last.state === 'refusing' ? last.since : clock.now()
        last = { state: 'refusing', since, reason }
      },
    },
    report: () => last,
    check() {
      const { reason } = last
      const detail = reason === null ? {} : { detail: `it refuses writes (${reason})` }
      return { name: 'store', ok: true, ...detail }
    },
  }
}
