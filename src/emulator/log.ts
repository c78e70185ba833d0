import type { PersistedEvent } from './event.ts'

/**
 * The organization's persisted events in order. `seq` counts from 1 without gaps. At most `limit` events are kept, and
 * up to a tenth more: events are removed in groups, the oldest first, because each removal moves the rest.
 */
export class EventLog {
  readonly #limit: number
  readonly #forget: (firstKept: number) => void
  #events: PersistedEvent[] = []
  #first = 1

  /** `forget` gets the oldest remaining `seq` after events were dropped. */
  constructor(limit: number, forget: (firstKept: number) => void) {
    this.#limit = limit
    this.#forget = forget
  }

  /** The `seq` of the oldest event kept, and of the newest (one less than `first` when there is none). */
  get first(): number {
    return this.#first
  }

  get last(): number {
    return this.#first + this.#events.length - 1
  }

  /** Restores the events of a log whose oldest event had this `seq`. */
  restore(events: PersistedEvent[], first: number): void {
    this.#events = events
    this.#first = first
  }

  append(event: Omit<PersistedEvent, 'seq'>): PersistedEvent {
    const numbered = { ...event, seq: this.last + 1 }
    this.#events.push(numbered)
    const surplus = this.#events.length - this.#limit
    if (surplus > this.#limit / 10) {
      this.#events = this.#events.slice(surplus)
      this.#first += surplus
      this.#forget(this.#first)
    }
    return numbered
  }

  /** The event with this `seq`, if it is kept. */
  at(seq: number): PersistedEvent | undefined {
    return this.#events[seq - this.#first]
  }

  /** At most `limit` events after `seq`. */
  after(seq: number, limit: number = this.#events.length): PersistedEvent[] {
    const from = Math.max(0, seq + 1 - this.#first)
    return this.#events.slice(from, from + limit)
  }
}
