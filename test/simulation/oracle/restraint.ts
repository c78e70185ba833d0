/** Milliseconds, true time. */
const WITHIN = 5000
/** Twice what the busiest of some thousand seeds asked for. */
const MOST = 200

/** What one life may ask of the service in a while: whoever goes round asks far more. */
export class Restraint {
  readonly #asked: number[] = []

  /** @returns false when it was too much. */
  asks(now: number): boolean {
    this.#asked.push(now)
    while (now - (this.#asked[0] ?? now) > WITHIN) this.#asked.shift()
    return this.#asked.length <= MOST
  }
}
