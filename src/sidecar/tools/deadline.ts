import type { Call } from '../../core/call.ts'
import type { ToolPorts } from './context.ts'

/** An answer must reach the service before the deadline: a run is stopped this much earlier, at most. Milliseconds. */
const MARGIN = 1000
/** A margin of 1 s would use up a deadline of 1 s, the shortest that the service takes (`timeout_seconds: 1`). */
const SHARE = 0.1

/**
 * Milliseconds left for a call, by the service's clock; infinite when it has no deadline, and until the service has said
 * what time it is: no call is given up by a clock of ours that may be wrong by hours.
 */
export function timeLeft(
  { service, clock }: Pick<ToolPorts, 'service' | 'clock'>,
  { createdAt, expiresAt, receivedAt }: Pick<Call, 'createdAt' | 'expiresAt' | 'receivedAt'>,
): number {
  if (expiresAt === null || service.clockOpen() === Infinity) return Infinity
  const offset = service.clockOffset()
  const span = expiresAt - (createdAt ?? receivedAt + offset)
  return expiresAt - Math.min(MARGIN, Math.max(0, span) * SHARE) - (clock.now() + offset)
}
