import type { Call } from '../core/call.ts'
import type { ToolPorts } from './context.ts'

/** An answer has to reach the service before the deadline: so much sooner we give up, milliseconds. */
const MARGIN = 1000

/**
 * Milliseconds left for a call, by the service's clock; infinite when it has no deadline, and until the service told its
 * time: by a clock of ours that is wrong by hours no call is given up.
 */
export function timeLeft(
  { service, clock }: Pick<ToolPorts, 'service' | 'clock'>,
  { expiresAt }: Pick<Call, 'expiresAt'>,
): number {
  if (expiresAt === null || service.clockOpen() === Infinity) return Infinity
  return expiresAt - MARGIN - (clock.now() + service.clockOffset())
}
