/** Milliseconds, true time. */
const WITHIN = 5000

/** What one life may ask for in a while: a loop without waits asks for far more. */
export class Restraint {
  readonly #most: number
  readonly #asked: number[] = []

  constructor(most: number) {
    this.#most = most
  }

  /** @returns false when it was too much. */
  asks(now: number): boolean {
    this.#asked.push(now)
    while (now - (this.#asked[0] ?? now) > WITHIN) this.#asked.shift()
    return this.#asked.length <= this.#most
  }
}
