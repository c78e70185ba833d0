import type { Histogram } from 'prom-client'
import type { LabelValues } from './label.ts'

interface Child {
  observe(value: number): void
}

/** A histogram of durations by one label, in seconds. An impossible duration (a clock that jumped) is left out. */
export class Spread {
  readonly #histogram: Histogram
  readonly #values: LabelValues
  readonly #children = new Map<string, Child>()

  constructor(histogram: Histogram, values: LabelValues) {
    this.#histogram = histogram
    this.#values = values
  }

  observe(label: string, seconds: number): void {
    if (!(seconds >= 0 && seconds < Infinity)) return
    const child = this.#children.get(label) ?? this.#child(this.#values.of(label))
    child.observe(seconds)
  }

  #child(value: string): Child {
    let child = this.#children.get(value)
    if (child === undefined) this.#children.set(value, (child = this.#histogram.labels(value)))
    return child
  }
}
