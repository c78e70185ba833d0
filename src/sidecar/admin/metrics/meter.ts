import { Counter, Gauge, type Registry } from 'prom-client'
import { valuesOf, type Labels } from './label.ts'
import { Spread } from './spread.ts'
import { Tally } from './tally.ts'

const PREFIX = 'session_sidecar_'

/** A value that is not known has no series: it must not look like 0. */
type Known = number | boolean | null | undefined
/** The value of the label, and the value of the gauge. */
type Row = readonly [string, Known]

interface Common {
  name: string
  help: string
  labelNames: string[]
  registers: Registry[]
}

/** Creates metrics in one registry. */
export class Meter {
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** A counter with at most two labels. Every combination of known values has a series from the start. */
  counter(name: string, help: string, labels: Labels = {}): Tally {
    const tally = new Tally(Object.keys(labels), valuesOf(labels))
    void new Counter({
      ...this.#common(name, help, labels),
      collect() {
        tally.drainInto(this)
      },
    })
    return tally
  }

  /** A histogram with at most one label. `buckets`: upper bounds, seconds. */
  histogram(name: string, help: string, labels: Labels, buckets: number[]): Spread {
    const [values = null] = valuesOf(labels)
    return new Spread({ ...this.#common(name, help, labels), buckets }, values)
  }

  /** A gauge without labels, read at each scrape. */
  gauge(name: string, help: string, read: () => Known | Promise<Known>): void {
    void new Gauge({
      ...this.#common(name, help, {}),
      async collect() {
        const value = Number((await read()) ?? Number.NaN)
        if (Number.isFinite(value)) this.set(value)
        else this.remove()
      },
    })
  }

  /** A gauge with one label, read at each scrape. The values that share the label `other` are added. */
  gauges(name: string, help: string, labels: Labels, read: () => Promise<Row[]>): void {
    this.#gauges(this.#common(name, help, labels), labels, read, (a, b) => a + b)
  }

  /** Like `gauges`, but of the values that share the label `other`, the lowest counts. */
  lowest(name: string, help: string, labels: Labels, read: () => Promise<Row[]>): void {
    this.#gauges(this.#common(name, help, labels), labels, read, Math.min)
  }

  #gauges(
    common: Common,
    labels: Labels,
    read: () => Promise<Row[]>,
    combine: (a: number, b: number) => number,
  ): void {
    const [values] = valuesOf(labels)
    const [label = ''] = Object.keys(labels)
    void new Gauge({
      ...common,
      async collect() {
        const combined = new Map<string, number>()
        for (const [given, known] of await read()) {
          if (known === null || known === undefined) continue
          const value = values?.of(given) ?? given
          const before = combined.get(value)
          combined.set(value, before === undefined ? Number(known) : combine(before, Number(known)))
        }
        this.reset()
        for (const [value, number] of combined) this.set({ [label]: value }, number)
      },
    })
  }

  #common(name: string, help: string, labels: Labels): Common {
    return { name: PREFIX + name, help, labelNames: Object.keys(labels), registers: [this.#registry] }
  }
}

/** Metrics have times and durations in seconds. */
export function secondsOf(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : ms / 1000
}
