import type { Service } from '../../core/ports.ts'
import type { Clock } from '../../std/ports.ts'

/**
 * When this process started, on the service's clock, milliseconds. The wall clock may be set back during the first
 * look, so the time is computed from the age of the process on the monotonic clock.
 */
export function startTime({
  clock,
  service,
}: {
  clock: Clock
  service: Pick<Service, 'clockOffset'>
}): () => number {
  const startedAt = clock.steady()
  return () => Math.round(clock.now() + service.clockOffset() - (clock.steady() - startedAt))
}
