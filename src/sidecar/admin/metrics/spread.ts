import type { Histogram } from 'prom-client'
import type { LabelValues } from './label.ts'

interface Child {
  observe(value: number): void
}

/** A histogram of durations by one label, in seconds. An impossible duration (a clock that jumped) is left out. */
export class Spread {
  readonly #histogram: Histogram
  /** null: it has no label. */
  readonly #values: LabelValues | null
  readonly #children = new Map<string, Child>()

  constructor(histogram: Histogram, values: LabelValues | null) {
    this.#histogram = histogram
    this.#values = values
  }

  observe(seconds: number, label = ''): void {
    if (!(seconds >= 0 && seconds < Infinity)) return
    const child = this.#children.get(label) ?? this.#child(this.#values?.of(label) ?? null)
    child.observe(seconds)
  }

  #child(value: string | null): Child {
    const key = value ?? ''
    let child = this.#children.get(key)
    if (child === undefined) {
      child = value === null ? this.#histogram.labels() : this.#histogram.labels(value)
      this.#children.set(key, child)
    }
    return child
  }
}
