import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { LabelValues } from './label.ts'
import { Spread } from './spread.ts'
import { Tally } from './tally.ts'

const PREFIX = 'session_sidecar_'

/** Rows of a gauge: the value of the label and the value of the gauge. */
export type Rows = Iterable<readonly [string, number]>

/** Creates metrics in one registry. */
export class Meter {
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  counter(name: string, help: string, labels: Readonly<Record<string, LabelValues>>): Tally {
    const tally = new Tally(labels)
    this.#register(
      (common) =>
        new Counter({
          ...common,
          labelNames: Object.keys(labels),
          collect() {
            tally.drainInto(this)
          },
        }),
      name,
      help,
    )
    return tally
  }

  histogram(name: string, help: string, label: string, values: LabelValues, buckets: number[]): Spread {
    const histogram = this.#register(
      (common) => new Histogram({ ...common, labelNames: [label], buckets }),
      name,
      help,
    )
    return new Spread(histogram, values)
  }

  /** A histogram without labels. */
  plainHistogram(name: string, help: string, buckets: number[]): (seconds: number) => void {
    const histogram = this.#register((common) => new Histogram({ ...common, buckets }), name, help)
    return (seconds) => {
      if (seconds >= 0 && seconds < Infinity) histogram.observe(seconds)
    }
  }

  /** A gauge without labels, read at each scrape. null: not known; then the series is absent, not 0. */
  gauge(name: string, help: string, read: () => number | null | Promise<number | null>): void {
    this.#register(
      (common) =>
        new Gauge({
          ...common,
          async collect() {
            const value = await read()
            if (value === null || !Number.isFinite(value)) this.remove()
            else this.set(value)
          },
        }),
      name,
      help,
    )
  }

  /** A gauge with one label, read at each scrape. `combine` merges the values that share the label `other`. */
  gauges(
    name: string,
    help: string,
    label: string,
    read: () => Rows | Promise<Rows>,
    combine: (a: number, b: number) => number = (a, b) => a + b,
    values = new LabelValues(),
  ): void {
    this.#register(
      (common) =>
        new Gauge({
          ...common,
          labelNames: [label],
          async collect() {
            const combined = new Map<string, number>()
            for (const [given, number] of await read()) {
              const value = values.of(given)
              const before = combined.get(value)
              combined.set(value, before === undefined ? number : combine(before, number))
            }
            this.reset()
            for (const [value, number] of combined) this.set({ [label]: value }, number)
          },
        }),
      name,
      help,
    )
  }

  #register<T>(
    make: (common: { name: string; help: string; registers: Registry[] }) => T,
    name: string,
    help: string,
  ): T {
    return make({ name: PREFIX + name, help, registers: [this.#registry] })
  }
}
