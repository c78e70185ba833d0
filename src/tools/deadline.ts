import type { Call } from '../core/call.ts'

/** An answer has to reach the service before the deadline: so much sooner we give up, milliseconds. */
const MARGIN = 1000

/** Milliseconds left for a call, by the service's clock; infinite when it has no deadline. */
export function timeLeft(call: Pick<Call, 'expiresAt'>, now: number, clockOffset: number): number {
  return call.expiresAt === null ? Number.POSITIVE_INFINITY : call.expiresAt - MARGIN - (now + clockOffset)
}
