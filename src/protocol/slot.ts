/**
 * How long after its end a connection surely holds no stream slot any more, milliseconds: the service frees it about 4.5
 * seconds after the client is gone (rule LIM-51).
 */
export const SLOT_FREED = 5000

/**
 * How a connection ended: the service closed it, its replay stopped and the rest must be requested, or it failed, maybe
 * in the middle of a replay.
 */
export type StreamEnd = 'closed' | 'replay_stopped' | 'broken'

/**
 * When to open an event stream again so that the slot of the last connection is not in the way. A replay of 1,500 frames
 * that stops every 200 is seven connections one after the other: with a slot to spare each may follow at once, with a
 * single slot the first of them is refused. From then on the others wait for the slot, until the
 * service closes a connection in order: a later replay may find a slot to spare.
 */
export class StreamSlot {
  /** Steady milliseconds. */
  #endedAt = -Infinity
  /** An open was refused since the service last closed a connection in order: there is no slot to spare. */
  #scarce = false

  /** A connection ended at `now`, on the steady clock. */
  ended(now: number, how: StreamEnd): void {
    this.#endedAt = now
    if (how === 'closed') this.#scarce = false
  }

  /** The service refused an open with `rate_limit_exceeded`. @returns for how long the last connection may be in the way. */
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
