/** Stands for every value that came after the limit was reached, and for those that are no plain word. */
const OTHER = 'other'

/** Distinct values of a label whose values come from outside. Each is a time series that somebody pays for. */
const LABEL_VALUES = 100

const WORD = /^[A-Za-z0-9_.:/+-]{1,64}$/

/**
 * Keeps the values of one label bounded: the service, a handler or an agent may invent words without end. `known` values
 * always have their place; of the others the first ones do.
 */
export class LabelValues {
  readonly #known: Set<string>
  readonly #limit: number

  constructor(known: readonly string[] = [], limit = LABEL_VALUES) {
    this.#known = new Set(known)
    this.#limit = Math.max(limit, known.length)
  }

  of(value: string): string {
    if (this.#known.has(value)) return value
    if (this.#known.size >= this.#limit || !WORD.test(value)) return OTHER
    this.#known.add(value)
    return value
  }
}
