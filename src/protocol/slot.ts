/**
 * A connection holds its stream slot for this long after its end, milliseconds. The service frees the slot
 * about 4.5 seconds after the client left (rule LIM-51).
 */
export const SLOT_FREED = 5000

/**
 * How a connection ended: the service closed it, its replay stopped and the rest must be requested,
 * or it failed, possibly during a replay.
 */
export type StreamEnd = 'closed' | 'replay_stopped' | 'broken'

/**
 * A replay of 1,500 frames stops every 200, so it needs eight connections. With a free slot each may follow at once. With
 * a single slot the second is refused, because the first still holds the slot. From then on the others wait for the slot,
 * until the service itself closes a connection: a later replay may find a free slot.
 */
export class StreamSlot {
  /** Steady milliseconds. */
  #endedAt = -Infinity
  /** An open was refused, and since then the service has not closed a connection itself: there is no free slot. */
  #scarce = false

  /** A connection ended at `now`, on the steady clock. */
  ended(now: number, how: StreamEnd): void {
    this.#endedAt = now
    if (how === 'closed') this.#scarce = false
  }

  /**
   * The service refused an open with `rate_limit_exceeded`. @returns how long the last connection
   * may still hold the slot.
   */
  refused(now: number): number {
    this.#scarce = true
    return this.#left(now)
  }

  /** Milliseconds to wait before the rest of a replay that stopped. */
  waitAfterStop(now: number): number {
    return this.#scarce ? this.#left(now) : 0
  }

  #left(now: number): number {
    return Math.max(0, this.#endedAt + SLOT_FREED - now)
  }
}
