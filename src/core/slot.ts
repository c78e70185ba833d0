/**
 * How long after its end a connection surely holds no stream slot any more, milliseconds: the service frees it about 4.5
 * seconds after the client is gone (interface.md, Limits).
 */
export const SLOT_FREED = 5000

/**
 * When to open an event stream again so that the slot of the last connection is not in the way. A replay of 1,500 frames
 * that stops every 200 is seven connections one after the other: with a slot to spare each may follow at once, with a
 * single slot the first of them is refused. From then on, as long as replays stop, the others wait for the slot.
 */
export class StreamSlot {
  /** Steady milliseconds. */
  #endedAt = -Infinity
  /** An open was refused since replays began to stop: there is no slot to spare. */
  #scarce = false

  /** A connection ended at `now`, on the steady clock. `stopped`: its replay did, and the rest is to be asked for. */
  ended(now: number, stopped: boolean): void {
    this.#endedAt = now
    if (!stopped) this.#scarce = false
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
