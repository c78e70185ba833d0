/**
 * What this process has claimed of one queue, by shard. While a claim reads a row, the work of the row may end and be
 * released, or its shard may be handed over: the result of the read is then old. So a claim returns no row that was released
 * since it began, and none of a shard that is no longer claimed.
 */
export class Claims<K> {
  /** The shard of each key. */
  readonly #claimed = new Map<K, number>()
  readonly #counts = new Map<number, number>()
  readonly #claiming = new Set<Set<K>>()
  readonly #mayClaim: (shard: number) => boolean

  constructor(mayClaim: (shard: number) => boolean) {
    this.#mayClaim = mayClaim
  }

  get size(): number {
    return this.#claimed.size
  }

  has(key: K): boolean {
    return this.#claimed.has(key)
  }

  shardOf(key: K): number | undefined {
    return this.#claimed.get(key)
  }

  /** The number of claims of a shard. */
  countOf(shard: number): number {
    return this.#counts.get(shard) ?? 0
  }

  add(key: K, shard: number): void {
    if (this.#claimed.has(key)) return
    this.#claimed.set(key, shard)
    this.#counts.set(shard, this.countOf(shard) + 1)
  }

  release(key: K): void {
    const shard = this.#claimed.get(key)
    if (shard === undefined) return
    this.#claimed.delete(key)
    this.#counts.set(shard, this.countOf(shard) - 1)
    for (const released of this.#claiming) released.add(key)
  }

  /**
   * Claims as many of the rows that `find` reads as there is room for. `ahead`: gets the rows behind them, and comes first
   * the next time.
   */
  async claim<R>(
    room: number,
    find: (limit: number) => Promise<R[]>,
    placeOf: (row: R) => [key: K, shard: number],
    ahead: ReadAhead<K, R> | null = null,
  ): Promise<R[]> {
    if (room <= 0) return []
    const claimed: R[] = []
    const add = (row: R): boolean => {
      const [key, shard] = placeOf(row)
      if (this.#claimed.has(key) || !this.#mayClaim(shard)) return false
      this.add(key, shard)
      return claimed.push(row) === room
    }
    for (const row of ahead?.take() ?? []) if (add(row)) return claimed
    const released = new Set<K>()
    this.#claiming.add(released)
    try {
      const rows = await find(room - claimed.length + this.size)
      const current = rows.filter((row) => !released.has(placeOf(row)[0]))
      const last = current.findIndex(add)
      if (last >= 0) ahead?.keep(current.slice(last + 1))
      return claimed
    } finally {
      this.#claiming.delete(released)
    }
  }

  /** The first row that `find` reads and that is not claimed. */
  async first<R>(find: (limit: number) => Promise<R[]>, keyOf: (row: R) => K): Promise<R | null> {
    const rows = await find(this.size + 1)
    return rows.find((row) => !this.#claimed.has(keyOf(row))) ?? null
  }
}

/**
 * A handler without an order has a lane for each fact, and a claim of 64 of them reads a million to find those that are due.
 * So it reads more than it claims. A row that was claimed and released since then is old, and so are those of a lease that
 * has ended.
 */
export class ReadAhead<K, R> {
  readonly #rows = new Map<K, { row: R; epoch: number }>()
  readonly #keyOf: (row: R) => K
  readonly #epochOf: (row: R) => number

  constructor(keyOf: (row: R) => K, epochOf: (row: R) => number) {
    this.#keyOf = keyOf
    this.#epochOf = epochOf
  }

  keep(rows: readonly R[]): void {
    for (const row of rows) this.#rows.set(this.#keyOf(row), { row, epoch: this.#epochOf(row) })
  }

  drop(key: K): void {
    this.#rows.delete(key)
  }

  /** The rows that are still valid; each is forgotten when it is taken. */
  *take(): Generator<R> {
    for (const [key, { row, epoch }] of this.#rows) {
      this.#rows.delete(key)
      if (epoch === this.#epochOf(row)) yield row
    }
  }

  /** Whether a valid row is left. */
  some(matches: (key: K) => boolean): boolean {
    for (const [key, { row, epoch }] of this.#rows)
      if (epoch === this.#epochOf(row) && matches(key)) return true
    return false
  }
}
