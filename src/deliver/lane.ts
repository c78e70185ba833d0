import type { Lane, PendingDelivery } from '../core/delivery.ts'
import type { SessionBrief } from '../core/resource.ts'
import type { Store } from '../core/store.ts'

/** What is read of a lane in one go, facts and characters: memory does not grow with the backlog. */
const READ_FACTS = 64
const READ_CHARACTERS = 1024 * 1024
/** Facts that a commit may hand over without our reading them. */
const HANDED_OVER = 256

/** A lane that is being worked on: its head, and as much of what follows as is at hand. */
export class ActiveLane {
  readonly lane: Lane
  readonly #store: Store
  #buffer: PendingDelivery[]
  /** Place of the last fact that was put into the buffer. */
  #last: number
  /** The buffer holds everything that the lane owes. */
  #complete: boolean
  #missed = false
  #reload = false
  #wake: (() => void) | null = null
  /** It is tried although the handler is down, to see whether it still is. */
  probe = false
  /** What its session is, when we had to look for it; null when nobody knows. */
  brief: SessionBrief | null = null
  /** When what became of the last attempt is durable. */
  settled: Promise<void> = Promise.resolve()

  constructor(store: Store, lane: Lane, deliveries: readonly PendingDelivery[] | null) {
    this.#store = store
    this.lane = lane
    this.#buffer = [...(deliveries ?? [])]
    this.#last = this.#buffer.at(-1)?.fact.pos ?? 0
    this.#complete = deliveries !== null
  }

  /** Facts that were just committed into the lane. */
  extend(deliveries: readonly PendingDelivery[]): void {
    const last = deliveries.at(-1)
    if (last === undefined) return
    this.#missed = true
    this.#wake?.()
    if (!this.#complete || this.#buffer.length + deliveries.length > HANDED_OVER) {
      this.#complete = false
      return
    }
    for (const delivery of deliveries) this.#buffer.push(delivery)
    this.#last = last.fact.pos
  }

  /** Deliveries became pending again behind our back. */
  reload(): void {
    this.#reload = true
  }

  get size(): number {
    return this.#buffer.length
  }

  head(count: number): readonly PendingDelivery[] {
    return this.#buffer.slice(0, count)
  }

  first(): PendingDelivery | undefined {
    return this.#buffer[0]
  }

  drop(count: number): void {
    if (count === 1) this.#buffer.shift()
    else this.#buffer.splice(0, count)
  }

  /** A lane is given back only when what became of it is durable; news meanwhile keeps it. */
  async #settledOrExtended(): Promise<void> {
    const extended = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    await Promise.race([this.settled, extended])
    this.#wake = null
  }

  /** Reads on when nothing is at hand. @returns false when the lane owes nothing. */
  async fill(): Promise<boolean> {
    if (this.#reload) {
      // What was delivered must be written before the lane is read from its start.
      await this.settled
      this.#reload = false
      this.#buffer = []
      this.#last = 0
      this.#complete = false
    }
    if (this.#buffer.length > 0) return true
    if (this.#complete) {
      await this.#settledOrExtended()
      return this.#buffer.length > 0 || this.#reload || !this.#complete
    }
    this.#missed = false
    const deliveries = await this.#store.readLane(this.lane, this.#last, READ_FACTS, READ_CHARACTERS)
    const last = deliveries.at(-1)
    if (last === undefined) {
      await this.#settledOrExtended()
      this.#complete = !this.#missed
      return this.#missed || this.#reload
    }
    this.#buffer = deliveries
    this.#last = last.fact.pos
    return true
  }
}
