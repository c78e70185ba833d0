/** Replaces every value after the limit, and every value that is not a plain word. */
const OTHER = 'other'

/** The most values of a label that comes from outside. Each value is a time series, which costs storage. */
const LABEL_VALUES = 100

const WORD = /^[A-Za-z0-9_.:/+-]{1,64}$/

/**
 * Limits the values of one label: the service, a handler or an agent may send any number of words. `known` values are
 * always kept, and have a series from the start; of the others, the first ones are kept.
 */
export class LabelValues {
  readonly known: readonly string[]
  readonly #kept: Set<string>
  readonly #limit: number

  constructor(known: readonly string[] = [], limit = LABEL_VALUES) {
    this.known = known
    this.#kept = new Set(known)
    this.#limit = Math.max(limit, known.length)
  }

  of(value: string): string {
    if (this.#kept.has(value)) return value
    if (this.#kept.size >= this.#limit || !WORD.test(value)) return OTHER
    this.#kept.add(value)
    return value
  }
}

/** The labels of a metric by name. A list has the known values of a label, which keeps the usual number of others. */
export type Labels = Readonly<Record<string, LabelValues | readonly string[]>>

export function valuesOf(labels: Labels): LabelValues[] {
  return Object.values(labels).map((given) => (given instanceof LabelValues ? given : new LabelValues(given)))
}
