/** After this many entries were taken from the front, the others move up in the array. */
const COMPACT = 256

/**
 * A first-in-first-out queue. `Array.shift` moves all remaining entries, which is too slow for a lane of 10,000
 * facts. A taken entry is overwritten, so that it can be freed. The array is never replaced, because V8 keeps alive
 * what a replaced array still refers to.
 */
export class Fifo<T> {
  readonly #entries: (T | undefined)[] = []
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
    return this.#entries.slice(this.#head, this.#head + count) as readonly T[]
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined
    const entry = this.#entries[this.#head]
    this.#entries[this.#head++] = undefined
    if (this.length > 0 && this.#head < COMPACT) return entry
    this.#entries.copyWithin(0, this.#head)
    this.#entries.length -= this.#head
    this.#head = 0
    return entry
  }
}
