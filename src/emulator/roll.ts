/** A list that keeps its newest `limit` entries and counts the dropped ones. */
export class Roll<Entry> {
  readonly #limit: number
  #entries: Entry[] = []
  forgotten = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  push(entry: Entry): void {
    this.#entries.push(entry)
    // Entries are removed a tenth at a time, because each removal moves the rest.
    const surplus = this.#entries.length - this.#limit
    if (surplus > this.#limit / 10) {
      this.#entries = this.#entries.slice(surplus)
      this.forgotten += surplus
    }
  }

  /** Restores the entries of a roll and its number of dropped ones. */
  restore(entries: Entry[], forgotten: number): void {
    this.#entries = entries
    this.forgotten = forgotten
  }

  /** The entries from a place on. Places count all entries, dropped ones included. */
  from(place: number): readonly Entry[] {
    return this.#entries.slice(Math.max(0, place - this.forgotten))
  }

  all(): readonly Entry[] {
    return this.#entries
  }
}
