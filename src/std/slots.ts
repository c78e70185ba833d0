/** Units of concurrency: at most `size` are taken at once, and further callers wait in order of arrival. */
export class Slots {
  readonly size: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(size: number) {
    this.size = size
  }

  /** Number of slots that are taken, and of callers that wait. */
  get wanted(): number {
    return this.#taken + this.#waiting.length
  }

  /** Takes a slot if one is free. Each taken slot is followed by one `free`. */
  take(): boolean {
    if (this.#taken >= this.size) return false
    this.#taken++
    return true
  }

  free(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#taken--
    else next()
  }

  /** Runs `work` in a slot. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (!this.take()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      this.free()
    }
  }
}
