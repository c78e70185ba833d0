import { Histogram, type HistogramConfiguration } from 'prom-client'
import type { LabelValues } from './label.ts'

/**
 * One series. `counts`: observations by the first bound that they do not exceed; the last count has those beyond all
 * bounds.
 */
interface Series {
  labels: Record<string, string>
  counts: number[]
  sum: number
}

/**
 * A histogram of durations by one label, in seconds. An impossible duration (a clock that jumped) is left out. Each
 * callback is counted in two of them. prom-client would validate and hash the labels each time, so it gets only the
 * sums, at each scrape.
 */
export class Spread extends Histogram {
  readonly #shown: { name: string; help: string; type: 'histogram'; aggregator: 'sum' }
  readonly #bounds: readonly number[]
  readonly #label: string | undefined
  /** null: it has no label. */
  readonly #values: LabelValues | null
  readonly #series = new Map<string, Series>()

  constructor(config: HistogramConfiguration<string> & { buckets: number[] }, values: LabelValues | null) {
    super(config)
    this.#shown = { name: config.name, help: config.help, type: 'histogram', aggregator: 'sum' }
    this.#bounds = config.buckets
    this.#label = config.labelNames?.[0]
    this.#values = values
    if (values === null) this.#seriesOf('')
  }

  count(seconds: number, label = ''): void {
    if (!(seconds >= 0 && seconds < Infinity)) return
    const series = this.#series.get(label) ?? this.#seriesOf(this.#values?.of(label) ?? '')
    let at = 0
    while (seconds > (this.#bounds[at] ?? Infinity)) at++
    series.counts[at] = (series.counts[at] ?? 0) + 1
    series.sum += seconds
  }

  /** Called by the registry at each scrape, and by `get`. */
  getForPromString() {
    const { name } = this.#shown
    const values = [...this.#series.values()].flatMap(({ labels: sharedLabels, counts, sum }) => {
      let value = 0
      const buckets = counts.map((count, at) => {
        value += count
        return {
          metricName: `${name}_bucket`,
          labels: { le: this.#bounds[at] ?? '+Inf' },
          sharedLabels,
          value,
        }
      })
      const total = { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum }
      return [...buckets, total, { metricName: `${name}_count`, labels: {}, sharedLabels, value }]
    })
    return { ...this.#shown, values }
  }

  #seriesOf(value: string): Series {
    let series = this.#series.get(value)
    if (series === undefined) {
      const labels = this.#label === undefined ? {} : { [this.#label]: value }
      series = { labels, counts: [...this.#bounds, Infinity].map(() => 0), sum: 0 }
      this.#series.set(value, series)
    }
    return series
  }
}
