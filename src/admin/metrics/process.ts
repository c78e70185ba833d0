import { collectDefaultMetrics, Registry } from 'prom-client'

let shared: Registry | null = null

/**
 * Node's own metrics. They describe the process, and their event-loop monitor and GC observer cannot be stopped again: so
 * there is one set, made when first asked for, however many sidecars one process starts and stops.
 */
export function processMetrics(): Registry {
  if (shared === null) {
    shared = new Registry()
    collectDefaultMetrics({ register: shared })
  }
  return shared
}
