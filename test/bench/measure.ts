import { median } from './statistics.ts'

/** One figure that is judged. */
export interface Measure {
  /** What `--only` and the table call it. */
  name: string
  unit: string
  digits: number
  /** What is judged of one repetition. `baseline` is NaN where there is none; `fdatasync` in milliseconds. */
  judge(ours: number, baseline: number, fdatasync: number): number
  /** The judged figure in words; its place is `#`. */
  judged: string
  floor: { at: 'least' | 'most'; value: number }
}

/** So many milliseconds at most. */
export function milliseconds(name: string, most: number): Measure {
  return {
    name,
    unit: 'ms',
    digits: 0,
    judge: (ours) => ours,
    judged: '# ms',
    floor: { at: 'most', value: most },
  }
}

/** Figures of one run, by the name of the measure. */
export type Figures = Readonly<Record<string, number>>

export interface Repetition {
  ours: Figures
  baseline: Figures
  /** Milliseconds. */
  fdatasync: number
}

/** What a measure came to over all repetitions. */
export interface Outcome {
  measure: Measure
  ours: number[]
  baseline: number[]
  judged: number[]
  pass: boolean
}

/** Each repetition is judged by itself, as its two runs had the same machine; their median counts. */
export function judge(measure: Measure, repetitions: readonly Repetition[]): Outcome {
  const ours = repetitions.map((repetition) => repetition.ours[measure.name] ?? Number.NaN)
  const baseline = repetitions.map((repetition) => repetition.baseline[measure.name] ?? Number.NaN)
  const judged = repetitions.map(({ fdatasync }, index) =>
    measure.judge(ours[index] ?? Number.NaN, baseline[index] ?? Number.NaN, fdatasync),
  )
  const result = median(judged)
  const { at, value } = measure.floor
  return { measure, ours, baseline, judged, pass: at === 'least' ? result >= value : result <= value }
}
