import { Registry } from 'prom-client'
import type { Observer } from '../../core/observer.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { StoreReader } from '../../core/store-reader.ts'
import { callbackMetrics } from './metrics/callbacks.ts'
import { channelMetrics } from './metrics/channels.ts'
import { factMetrics } from './metrics/facts.ts'
import { Meter } from './metrics/meter.ts'
import { processMetrics } from './metrics/process.ts'
import { relayMetrics } from './metrics/relay.ts'
import { serviceMetrics } from './metrics/service.ts'
import { createSnapshot } from './metrics/snapshot.ts'
import { stateMetrics, type StateSources } from './metrics/state.ts'
import { storeMetrics } from './metrics/store.ts'
import { toolMetrics } from './metrics/tools.ts'

export interface MetricsOptions extends StateSources {
  version: string
  /** Asked at the first scrape, so that the metrics may be there before the store, which reports its commits to them. */
  store: () => Pick<StoreReader, 'counts' | 'handlers'>
  clock: Pick<Clock, 'steady'>
  log: Log
  /** Names of the configured handlers and tools: their series exist from the start. */
  handlers: readonly string[]
  tools: readonly string[]
}

/** What is counted; the rest passes by. */
type CountedObserver = Omit<Observer, 'transient' | 'streamCommitted'>

export interface Metrics {
  observer: CountedObserver
  /** Ours alone: several sidecars in one process count apart. */
  registry: Registry
  /** The text that Prometheus reads, with Node's process metrics. */
  scrape(): Promise<{ contentType: string; body: string }>
}

/** Counts what the parts tell (README, Metrics). Starts no timer. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry()
  const meter = new Meter(registry)
  const snapshot = createSnapshot(options)
  meter.gauges('build_info', 'The version that runs.', 'version', () => [[options.version, 1]])
  const observer: CountedObserver = {
    ...serviceMetrics(meter),
    ...channelMetrics(meter),
    ...factMetrics(meter),
    ...callbackMetrics(meter, options.handlers, snapshot),
    ...toolMetrics(meter, options.tools),
    ...relayMetrics(meter),
    ...storeMetrics(meter),
  }
  stateMetrics(meter, snapshot, options)

  return {
    observer,
    registry,
    async scrape() {
      const [ours, process] = await Promise.all([registry.metrics(), processMetrics().metrics()])
      return { contentType: registry.contentType, body: `${ours}\n${process}` }
    },
  }
}
