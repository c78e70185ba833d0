import { collectDefaultMetrics, Registry } from 'prom-client'

/** Gauges with names that end in `_total`, like those of counters. Each is the sum of another gauge, which is kept. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let shared: Registry | null = null

/**
 * Node's own metrics. They describe the process, and their event-loop monitor and GC observer cannot be stopped again: so
 * there is one set, made when first asked for, however many sidecars one process starts and stops.
 */
export function processMetrics(): Registry {
  if (shared === null) {
    shared = new Registry()
    collectDefaultMetrics({ register: shared })
    for (const name of MISNAMED) shared.removeSingleMetric(name)
  }
  return shared
}
