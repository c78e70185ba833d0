import type { Committed } from '../../core/store.ts'
import type { HandlerRecord } from '../../core/store-reader.ts'
import { compilePatterns, type EventPattern } from '../../core/pattern.ts'
import type { StoredFact } from '../../core/fact.ts'
import type { HandlerStatus, Pause } from './health.ts'
import type { AckBatcher } from './ack-batcher.ts'
import type { Worker } from './worker.ts'

/** Grace that a stop leaves to deliveries under way, milliseconds. */
const DRAIN = 10_000

/** All handlers' deliveries. */
export interface Dispatcher {
  start(): void
  stop(grace?: number): Promise<void>
  news(committed: Committed): void
  transient(fact: StoredFact): void
  reload(): void
  worker(name: string): Worker | undefined
  statuses(): HandlerStatus[]
}

export function createDispatcher(workers: readonly Worker[], acks: AckBatcher): Dispatcher {
  const byName = new Map(workers.map((worker) => [worker.spec.name, worker]))
  const patterns = new Map<Worker, EventPattern>(
    workers.map((worker) => [worker, compilePatterns(worker.spec.events)]),
  )

  return {
    start() {
      for (const worker of workers) worker.start()
    },
    async stop(grace = DRAIN) {
      const stopping = Promise.all(workers.map((worker) => worker.stop(grace)))
      acks.stop()
      await stopping
    },
    news(committed) {
      for (const news of committed.lanes) byName.get(news.lane.handler)?.news(news)
    },
    transient(fact) {
      for (const [worker, pattern] of patterns) if (pattern.wantsTransient(fact.type)) worker.transient(fact)
    },
    reload() {
      for (const worker of workers) worker.reload()
    },
    worker: (name) => byName.get(name),
    statuses: () => workers.map((worker) => worker.status()),
  }
}

/** The pause in which a handler was when we last ran: it goes on. */
export function pauseOf(records: readonly HandlerRecord[], name: string): Pause | null {
  const { pausedAt = null, pauseReason = null } = records.find((record) => record.name === name) ?? {}
  return pausedAt === null ? null : { since: pausedAt, reason: pauseReason }
}
