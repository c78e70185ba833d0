import type { Ack, Attempt } from '../../core/delivery.ts'

/** The state of a delivery after an attempt: pending, delivered or dead. */
export const STATUS: Record<Ack['result'], number> = { retry: 0, delivered: 1, dead: 2 }

/**
 * An attempt in flight for this long is recorded as begun, milliseconds. Nearly every attempt ends and is stored
 * sooner.
 */
export const LONG = 50
/** The error of an attempt that a crash interrupted. */
export const CUT = 'the sidecar stopped before an answer'

/** The JSON of an attempt, as short as possible: every delivered row has one. */
export function attemptText({ at, status, error, ms }: Attempt): string {
  const outcome = status === undefined ? `"error":${JSON.stringify(error ?? '')}` : `"status":${status}`
  const both =
    status !== undefined && error !== undefined ? `${outcome},"error":${JSON.stringify(error)}` : outcome
  return `{"at":${at},${both},"ms":${Math.round(ms)}}`
}
