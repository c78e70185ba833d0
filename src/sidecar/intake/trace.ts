import { messageOf } from '../../std/errors.ts'
import type { Clock } from '../../std/ports.ts'
import type { Tracer, TraceSource } from '../../core/trace.ts'
import type { SessionReader } from './read.ts'

/** Shows each reading in the trace of its session, which may be known only once it was read. */
export function traced(
  reader: SessionReader,
  { tracer, clock, traceOf }: { tracer: Tracer; clock: Clock; traceOf: (sessionId: string) => TraceSource },
): SessionReader {
  return {
    ...reader,
    async read(entry, sessionId, listed) {
      const since = clock.now()
      const end = (fault: string | null): void =>
        tracer
          .start('reading', traceOf(sessionId), () => ({ 'session_sidecar.session.id': sessionId }), since)
          .end(fault)
      try {
        const done = await reader.read(entry, sessionId, listed)
        end(null)
        return done
      } catch (error) {
        end(messageOf(error))
        throw error
      }
    },
  }
}
