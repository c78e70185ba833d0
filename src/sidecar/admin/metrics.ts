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
import { createSnapshot, type Snapshot } from './metrics/snapshot.ts'
import { stateMetrics, type StateSources } from './metrics/state.ts'
import { shardMetrics } from './metrics/shards.ts'
import { storeMetrics } from './metrics/store.ts'
import { toolMetrics } from './metrics/tools.ts'

export interface MetricsOptions extends StateSources {
  /** What runs: the version, and the fingerprint of its configuration. */
  build: { version: string; configuration: string }
  /** Called at the first scrape, because the metrics exist before the store, which reports its commits to them. */
  store: () => Pick<StoreReader, 'counts' | 'handlers'>
  clock: Pick<Clock, 'steady'>
  log: Log
  /** Names of the configured handlers and tools: their series exist from the start. */
  handlers: readonly string[]
  tools: readonly string[]
}

/** The reports that are counted; others are ignored. */
type CountedObserver = Omit<Observer, 'transient' | 'streamCommitted'>

export interface Metrics {
  observer: CountedObserver
  /** One registry per sidecar: several sidecars in one process count separately. */
  registry: Registry
  /** The text that Prometheus reads, with Node's process metrics. */
  scrape(): Promise<{ contentType: string; body: string }>
}

/** Counts the reports of the parts (config/README.md, Metrics). Starts no timer. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry()
  const meter = new Meter(registry)
  const read = createSnapshot(options)
  const shards = shardMetrics(meter, options.clock)
  const snapshot = async (): Promise<Snapshot | null> => (shards.leads() ? await read() : null)
  meter.gauges('build_info', 'The version that runs.', { version: [] }, async () => [
    [options.build.version, 1],
  ])
  meter.gauges(
    'configuration_info',
    'The fingerprint of the configuration: equal on all replicas.',
    { fingerprint: [] },
    async () => [[options.build.configuration, 1]],
  )
  const observer: CountedObserver = {
    ...serviceMetrics(meter),
    ...channelMetrics(meter),
    ...factMetrics(meter),
    ...callbackMetrics(meter, options.handlers, snapshot),
    ...toolMetrics(meter, options.tools),
    ...relayMetrics(meter),
    ...storeMetrics(meter),
    ...shards.observer,
  }
  stateMetrics(meter, snapshot, options)
  meter.gauge(
    'store_readable',
    '1 while these metrics can be read from the store.',
    async () => (await read()) !== null,
  )

  return {
    observer,
    registry,
    async scrape() {
      const [ours, process] = await Promise.all([registry.metrics(), processMetrics().metrics()])
      return { contentType: registry.contentType, body: `${ours}\n${process}` }
    },
  }
}
