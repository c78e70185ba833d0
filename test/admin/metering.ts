import { createMetrics, type Metrics, type MetricsOptions } from '../../src/sidecar/admin/metrics.ts'
import type { Fact, StoredFact } from '../../src/core/fact.ts'
import type { Store } from '../../src/core/store.ts'
import { readExposition, type Family } from './exposition.ts'
import { clock, memoryLog, openStore } from './seed.ts'

/** Metrics over a store in memory, with a clock that a test moves. */
export interface Metering {
  store: Store
  metrics: Metrics
  log: ReturnType<typeof memoryLog>
  /** Another set of metrics, over the same store. */
  make: (options?: Partial<MetricsOptions>) => Metrics
  scrape: (from?: Metrics) => Promise<Map<string, Family>>
  /** The value of one sample; undefined when there is none. */
  valueOf: (name: string, labels?: Record<string, string>, from?: Metrics) => Promise<number | undefined>
  /** Milliseconds. */
  advance: (ms: number) => void
}

export function startMetering(options: Partial<MetricsOptions> = {}): Metering {
  let steady = 0
  const log = memoryLog()
  const make = (more: Partial<MetricsOptions> = {}): Metrics =>
    createMetrics({
      build: { version: '1.2.3+build', configuration: '0f' },
      store: () => store.read,
      clock: { steady: () => steady },
      log,
      handlers: ['app'],
      tools: ['lookup_order'],
      ...more,
    })
  const metrics = make(options)
  // On a busy machine a count took 20 ms, and the store used it for the next scrapes.
  const frozen = { ...clock, steady: () => steady }
  const store = openStore(':memory:', (seconds) => metrics.observer.commit(seconds), frozen)
  const scrape = async (from = metrics) => readExposition((await from.scrape()).body)
  return {
    store,
    metrics,
    log,
    make,
    scrape,
    async valueOf(name, labels = {}, from = metrics) {
      const samples = [...(await scrape(from)).values()].flatMap((family) => family.samples)
      return samples.find(
        (sample) =>
          sample.name === `session_sidecar_${name}` &&
          Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
      )?.value
    },
    advance: (ms) => void (steady += ms),
  }
}

export function stored(fact: Fact): StoredFact {
  return { ...fact, pos: 1 }
}
