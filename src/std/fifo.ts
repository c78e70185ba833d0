/** Entries taken from the front that stay in the array before it is copied. */
const COMPACT = 256

/**
 * A first-in-first-out queue. `Array.shift` moves all remaining entries, which is too slow for a lane of 10,000 facts.
 */
export class Fifo<T> {
  #entries: T[] = []
  /** Index of the first. */
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  push(entry: T): void {
    this.#entries.push(entry)
  }

  first(): T | undefined {
    return this.#entries[this.#head]
  }

  /** The first `count`, or as many as there are. */
  head(count: number): readonly T[] {
    return this.#entries.slice(this.#head, this.#head + count)
  }

  /** Removes the first. */
  shift(): T | undefined {
    if (this.length === 0) return undefined
    const entry = this.#entries[this.#head++]
    if (this.length === 0) this.#entries = []
    else if (this.#head < COMPACT) return entry
    else this.#entries = this.#entries.slice(this.#head)
    this.#head = 0
    return entry
  }
}
