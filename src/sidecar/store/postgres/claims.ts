/**
 * What this process has claimed of one queue. A claim reads a row, and meanwhile the row is worked off and
 * released: what was read of it is old. So a claim gives out no row that was released since it began.
 */
export class Claims<K> {
  readonly #claimed = new Set<K>()
  readonly #claiming = new Set<Set<K>>()

  get size(): number {
    return this.#claimed.size
  }

  has(key: K): boolean {
    return this.#claimed.has(key)
  }

  add(key: K): void {
    this.#claimed.add(key)
  }

  release(key: K): void {
    if (!this.#claimed.delete(key)) return
    for (const released of this.#claiming) released.add(key)
  }

  /** Claims as many of the rows that `find` reads as there is room for. */
  async claim<R>(room: number, find: (limit: number) => Promise<R[]>, keyOf: (row: R) => K): Promise<R[]> {
    if (room <= 0) return []
    const released = new Set<K>()
    this.#claiming.add(released)
    try {
      const rows = await find(room + this.size)
      const free = rows
        .filter((row) => !this.#claimed.has(keyOf(row)) && !released.has(keyOf(row)))
        .slice(0, room)
      for (const row of free) this.#claimed.add(keyOf(row))
      return free
    } finally {
      this.#claiming.delete(released)
    }
  }

  /** The first of the rows that `find` reads that is not claimed. */
  async first<R>(find: (limit: number) => Promise<R[]>, keyOf: (row: R) => K): Promise<R | null> {
    const rows = await find(this.size + 1)
    return rows.find((row) => !this.#claimed.has(keyOf(row))) ?? null
  }
}
