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

  /** Claims as many of the rows that `find` reads as there is room for. `except`: keys that are left out. */
  async claim<R>(
    room: number,
    find: (limit: number) => Promise<R[]>,
    placeOf: (row: R) => [key: K, shard: number],
    except: ReadonlySet<K> = new Set(),
  ): Promise<R[]> {
    if (room <= 0) return []
    const released = new Set<K>()
    this.#claiming.add(released)
    try {
      const claimed: R[] = []
      for (const row of await find(room + this.size + except.size)) {
        if (claimed.length === room) break
        const [key, shard] = placeOf(row)
        if (this.#claimed.has(key) || released.has(key) || except.has(key) || !this.#mayClaim(shard)) continue
        this.add(key, shard)
        claimed.push(row)
      }
      return claimed
    } finally {
      this.#claiming.delete(released)
    }
  }

  /** The first row that `find` reads and that is not claimed. */
  async first<R>(
    find: (limit: number) => Promise<R[]>,
    keyOf: (row: R) => K,
    except: ReadonlySet<K> = new Set(),
  ): Promise<R | null> {
    const rows = await find(this.size + except.size + 1)
    return rows.find((row) => !this.#claimed.has(keyOf(row)) && !except.has(keyOf(row))) ?? null
  }
}
