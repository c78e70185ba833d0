/**
 * A map that keeps the last `limit` keys that were set, and at most twice as many. It consists of two maps, of which the
 * older one is dropped as a whole. In a single map each removal of the oldest key leaves a hole, and each search for the
 * next oldest key passes all holes before it.
 */
export class BoundedMap<Key, Value> {
  readonly #limit: number
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: Key): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: Key, value: Value): void {
    if (this.#young.size >= this.#limit && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  delete(key: Key): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
