/** Replaces every value after the limit, and every value that is not a plain word. */
const OTHER = 'other'

/** The most values of a label that comes from outside. Each value is a time series, which costs storage. */
const LABEL_VALUES = 100

const WORD = /^[A-Za-z0-9_.:/+-]{1,64}$/

/**
 * Limits the values of one label: the service, a handler or an agent may send any number of words. `known` values are
 * always kept; of the others, the first ones.
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
