import type { Lane, LanePage, PendingDelivery } from '../../core/delivery.ts'
import type { SessionSummary } from '../../core/resource.ts'
import { Fifo } from '../../std/fifo.ts'
import type { AckOwner } from './ack-batcher.ts'
import type { Outgoing } from './targets/target.ts'
import type { Verdict } from './targets/verdict.ts'

/**
 * - `ready`: has deliveries in memory and waits for a slot
 * - `sending`: has a slot; its head is under way
 * - `waiting`: for a read of the store, the summary of its session, or more deliveries for its batch
 * - `draining`: has nothing to send; is released when its acks are durable
 * - `released`: no longer claimed
 */
export type LaneState = 'ready' | 'sending' | 'waiting' | 'draining' | 'released'

/** The current attempt of a lane. A lane makes thousands of attempts, and each uses this object again. */
class AttemptUnderWay {
  batch: readonly PendingDelivery[] = []
  positions: readonly number[] = []
  outgoing: readonly Outgoing[] = []
  /** When it began: wall clock milliseconds. */
  at = 0
  /** The same, steady milliseconds. */
  started = 0
  /** Attempts that the lane made in its slot before this one. */
  taken = 0
  /** It was sent once more after a reset. */
  again = false
}

/** A claimed lane: its pending deliveries, in order, as many as are in memory. */
export class ActiveLane implements AckOwner {
  readonly lane: Lane
  readonly #window: MemoryWindow
  readonly #onAcknowledged: (lane: ActiveLane) => void
  readonly #deliveries = new Fifo<PendingDelivery>()
  /** Position of the last fact in memory. */
  #last = 0
  /** Nothing is pending in the store beyond what is in memory. */
  #complete: boolean
  /** Facts were committed to the lane that are not in memory. */
  #missed = false
  /** Deliveries in the middle became pending again: the store is read from the start. */
  #stale = false
  /** Acks that are not durable yet. */
  unacknowledged = 0
  state: LaneState = 'waiting'
  /** When it came into memory, steady clock. */
  begunAt = 0
  /** When the store was last read from the start of the lane, steady clock. */
  readAt = 0
  /** When it got its present slot, steady clock. */
  slotAt = 0
  /** When it is due again, steady milliseconds; null if nothing delays it. */
  dueAt: number | null = null
  /** It is tried although the handler is down, to find out whether it is up again. */
  probe = false
  /** It has waited for the first read of its session, and does not wait for it again. */
  waited = false
  /** The summary of its session, if it had to be read. */
  summary: SessionSummary | null = null
  readonly attempt = new AttemptUnderWay()
  /** Called with the outcome of each attempt. One function for all attempts of the lane. */
  ended: (verdict: Verdict) => void = () => undefined

  /** `deliveries`: all that are pending in it; null where the store has to be read. */
  constructor(
    lane: Lane,
    deliveries: readonly PendingDelivery[] | null,
    window: MemoryWindow,
    onAcknowledged: (lane: ActiveLane) => void,
  ) {
    this.lane = lane
    this.#window = window
    this.#onAcknowledged = onAcknowledged
    this.#complete = deliveries !== null
    if (deliveries !== null) this.extend(deliveries)
  }

  acknowledged(): void {
    this.unacknowledged--
    if (this.unacknowledged === 0) this.#onAcknowledged(this)
  }

  /** Adds facts that were just committed into the lane. Facts beyond the window are read from the store later. */
  extend(deliveries: readonly PendingDelivery[]): void {
    this.#missed = true
    if (!this.#complete) return
    for (const delivery of deliveries) {
      // The commit was reported late, and the store was read meanwhile.
      if (delivery.fact.pos <= this.#last) continue
      if (!this.#window.take(delivery)) {
        this.#complete = false
        return
      }
      this.#deliveries.push(delivery)
      this.#last = delivery.fact.pos
    }
  }

  /** Another process may have put facts into the lane: after the deliveries in memory, the store is read again. */
  miss(): void {
    this.#missed = true
    this.#complete = false
  }

  /** Takes the deliveries that the store returned after the position of `beginRead`. */
  fill({ deliveries, complete }: LanePage): void {
    const last = deliveries.at(-1)
    this.#complete = !this.#missed && (last === undefined || complete)
    if (last === undefined) return
    this.clear()
    for (const delivery of deliveries) {
      this.#window.force(delivery)
      this.#deliveries.push(delivery)
    }
    this.#last = last.fact.pos
  }

  /**
   * A read of the store begins: facts that are committed from here on may be missing in its result. @returns the
   * position to read after.
   */
  beginRead(): number {
    if (this.#stale) {
      this.clear()
      this.#last = 0
      this.#complete = false
      this.#stale = false
    }
    this.#missed = false
    return this.#last
  }

  markStale(): void {
    this.#stale = true
  }

  get stale(): boolean {
    return this.#stale
  }

  /** The store must be read: nothing is in memory and it may hold more, or deliveries became pending again. */
  get unread(): boolean {
    return this.#stale || (this.size === 0 && !this.#complete)
  }

  get size(): number {
    return this.#deliveries.length
  }

  first(): PendingDelivery | undefined {
    return this.#deliveries.first()
  }

  head(count: number): readonly PendingDelivery[] {
    return this.#deliveries.head(count)
  }

  /** Removes the first `count` deliveries, which have an outcome. */
  drop(count: number): void {
    for (let left = count; left > 0; left--) {
      const delivery = this.#deliveries.shift()
      if (delivery === undefined) break
      this.#window.release(delivery)
    }
  }

  /** Removes all deliveries from memory. */
  clear(): void {
    this.drop(this.size)
  }
}

/** Characters of facts that all lanes together keep in memory; further facts wait in the store. */
const CHARACTERS = 16 * 1024 * 1024
/** The memory of a fact besides its body: its object, its ids, its entry in a lane. */
const EACH = 200

/** The memory that committed facts may take on their way to handlers. */
export class MemoryWindow {
  readonly #all: number
  #left: number
  #low: { mark: number; reached: () => void } | null = null

  constructor(characters = CHARACTERS) {
    this.#all = characters
    this.#left = characters
  }

  /** Characters that are on their way. */
  get taken(): number {
    return this.#all - this.#left
  }

  /** @returns false where there is no room. */
  take(delivery: PendingDelivery): boolean {
    if (this.#left <= 0) return false
    this.#left -= sizeOf(delivery)
    return true
  }

  /** Counts what a lane reads from the store: one bounded page, which must not wait for other lanes. */
  force(delivery: PendingDelivery): void {
    this.#left -= sizeOf(delivery)
  }

  release(delivery: PendingDelivery): void {
    this.#left += sizeOf(delivery)
    if (this.#low !== null && this.taken <= this.#low.mark) this.#low.reached()
  }

  /** Calls `reached` after each release that leaves at most `mark` characters; `null` ends this. Only one reader may watch. */
  watch(low: { mark: number; reached: () => void } | null): void {
    this.#low = low
  }
}

function sizeOf({ fact }: PendingDelivery): number {
  return fact.body.length + EACH
}
