import type { Log } from '../../src/std/ports.ts'
import { secretIn } from './oracle/secrets.ts'
import type { Trace } from './trace.ts'

/** A log that keeps its warnings for the trace and looks for secrets in every line. */
export function listeningLog(trace: Trace, now: () => number): Log {
  const look = (details: object, message: string): void => {
    const line = message + JSON.stringify(details, plain)
    if (secretIn(line) !== undefined) trace.broken('I13', `the log says: ${line}`)
  }
  const kept = (level: string) => (details: object, message: string) => {
    look(details, message)
    trace.note(now(), `log ${level}:`, message)
  }
  const log: Log = {
    debug: look,
    info: look,
    warn: kept('warn'),
    error: kept('error'),
    child: () => log,
  }
  return log
}

function plain(_key: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value
}
