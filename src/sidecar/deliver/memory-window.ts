import type { PendingDelivery } from '../../core/delivery.ts'

/** Characters of facts that all lanes together keep at hand; what does not fit waits in the store. */
const CHARACTERS = 16 * 1024 * 1024
/** What a fact takes besides its body: its object, its ids, its place in a lane. */
const EACH = 200

/** The memory that committed facts may take on their way to handlers. */
export class MemoryWindow {
  #left: number

  constructor(characters = CHARACTERS) {
    this.#left = characters
  }

  /** @returns false where there is no room. */
  take(delivery: PendingDelivery): boolean {
    if (this.#left <= 0) return false
    this.#left -= sizeOf(delivery)
    return true
  }

  /** For what a lane reads to go on: a bounded page, that must not wait for the other lanes. */
  force(delivery: PendingDelivery): void {
    this.#left -= sizeOf(delivery)
  }

  release(delivery: PendingDelivery): void {
    this.#left += sizeOf(delivery)
  }
}

function sizeOf({ fact }: PendingDelivery): number {
  return fact.body.length + EACH
}
