import type { Observer } from '../../core/observer.ts'

/** Counts the facts that were shown, and those whose callback was shown. */
export class Tally {
  readonly #facts = new Set<string>()
  readonly #delivered = new Set<string>()

  readonly observer: Partial<Observer> = {
    fact: ({ id }) => void this.#facts.add(id),
    callback: ({ fact, outcome }) => {
      if (outcome === 'delivered') this.#delivered.add(fact.id)
    },
  }

  get facts(): number {
    return this.#facts.size
  }

  get delivered(): number {
    return this.#delivered.size
  }
}
