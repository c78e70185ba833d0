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

  all(): readonly Entry[] {
    return this.#entries
  }
}
