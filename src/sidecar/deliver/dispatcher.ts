import type { Subscriber } from '../../core/bus.ts'
import type { HandlerRecord } from '../../core/store-reader.ts'
import { compilePatterns, type EventPattern } from '../../core/pattern.ts'
import type { HandlerStatus, Pause } from './health.ts'
import type { MemoryWindow } from './lane.ts'
import type { LanePorts } from './lane-runner.ts'
import { transientFact } from './transient.ts'
import type { Worker } from './worker.ts'

/** How long a stop waits for attempts in flight, milliseconds. */
const DRAIN = 10_000

/** Delivers facts to all handlers, through one worker each. */
export interface Dispatcher extends Required<Pick<Subscriber, 'lanesExtended' | 'transient'>> {
  /** Committed facts in memory on their way to handlers. */
  readonly window: Pick<MemoryWindow, 'taken'>
  /** `records`: the handlers as the store knows them. */
  start(records: readonly HandlerRecord[]): void
  stop(grace?: number): Promise<void>
  reload(): void
  worker(name: string): Worker | undefined
  statuses(): HandlerStatus[]
}

export function createDispatcher(
  workers: readonly Worker[],
  { acks, window }: Pick<LanePorts, 'acks' | 'window'>,
): Dispatcher {
  const byName = new Map(workers.map((worker) => [worker.spec.name, worker]))
  const patterns = new Map<Worker, EventPattern>(
    workers.map((worker) => [worker, compilePatterns(worker.spec.events)]),
  )

  return {
    window,
    start(records) {
      for (const worker of workers) worker.start(pauseOf(records, worker.spec.name))
    },
    async stop(grace = DRAIN) {
      const stopping = Promise.all(workers.map((worker) => worker.stop(grace)))
      acks.stop()
      await stopping
    },
    lanesExtended(lanes) {
      for (const extension of lanes) byName.get(extension.lane.handler)?.extend(extension)
    },
    transient(event) {
      const fact = transientFact(event)
      for (const [worker, pattern] of patterns) if (pattern.wantsTransient(fact.type)) worker.transient(fact)
    },
    reload() {
      for (const worker of workers) worker.reload()
    },
    worker: (name) => byName.get(name),
    statuses: () => workers.map((worker) => worker.status()),
  }
}

/** A handler that was paused before the restart stays paused. */
function pauseOf(records: readonly HandlerRecord[], name: string): Pause | null {
  const { pausedAt = null, pauseReason = null } = records.find((record) => record.name === name) ?? {}
  return pausedAt === null ? null : { since: pausedAt, reason: pauseReason }
}
