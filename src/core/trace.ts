import { hash } from 'node:crypto'
import type { Random } from './ports.ts'

const TRACEPARENT = /^00-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/

/** Trace ids of sessions are asked for at every callback; a few thousand are remembered. */
const REMEMBERED = 4096
const traces = new Map<string, string>()

/**
 * A W3C `traceparent` with a span of its own: in the trace that the session's metadata names (`given`), else in one made
 * from `key`, so that everything about a session is one trace.
 */
export function traceparent(given: string | undefined, key: string, random: Random): string {
  const match = given === undefined ? null : TRACEPARENT.exec(given)
  if (match !== null) return `00-${match[1]}-${random.hex(8)}-${match[2]}`
  return `00-${traceOf(key)}-${random.hex(8)}-01`
}

function traceOf(key: string): string {
  let trace = traces.get(key)
  if (trace === undefined) {
    trace = hash('sha256', key, 'hex').slice(0, 32)
    if (traces.size >= REMEMBERED) traces.clear()
    traces.set(key, trace)
  }
  return trace
}
