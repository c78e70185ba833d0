/** Units of concurrency: at most `size` are taken at once, and further callers wait in order of arrival. */
export class Slots {
  #size: number
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(size: number) {
    this.#size = size
  }

  get size(): number {
    return this.#size
  }

  /** Callers with a slot keep it. */
  resize(size: number): void {
    this.#size = size
    while (this.#waiting.size > 0 && this.take()) this.free()
  }

  /** The number of waiting callers. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** The number of taken slots and waiting callers together. */
  get wanted(): number {
    return this.#taken + this.#waiting.size
  }

  /** Takes a slot if one is free. Each taken slot is followed by one `free`. */
  take(): boolean {
    if (this.#taken >= this.#size) return false
    this.#taken++
    return true
  }

  free(): void {
    const [next] = this.#waiting
    if (next === undefined || this.#taken > this.#size) this.#taken--
    else {
      this.#waiting.delete(next)
      next()
    }
  }

  /** Runs `work` in a slot. @throws the signal's reason when that ends first. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!this.take()) await this.#turn(signal)
    try {
      return await work()
    } finally {
      this.free()
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#waiting.delete(go)
        reject(signal?.reason as Error)
      }
      this.#waiting.add(go)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}
