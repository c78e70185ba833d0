/** A list that keeps its newest `limit` entries; what it had to forget is counted. */
export class Roll<Entry> {
  readonly #limit: number
  #entries: Entry[] = []
  forgotten = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  push(entry: Entry): void {
    this.#entries.push(entry)
    // A tenth at a time, so that shifting the rest is seldom.
    const surplus = this.#entries.length - this.#limit
    if (surplus > this.#limit / 10) {
      this.#entries = this.#entries.slice(surplus)
      this.forgotten += surplus
    }
  }

  /** Puts back what a roll held that had forgotten so many. */
  restore(entries: Entry[], forgotten: number): void {
    this.#entries = entries
    this.forgotten = forgotten
  }

  /** The entries from a place on, counted from the first there ever was. */
  from(place: number): readonly Entry[] {
    return this.#entries.slice(Math.max(0, place - this.forgotten))
  }

  all(): readonly Entry[] {
    return this.#entries
  }
}
