import { median } from './statistics.ts'

/** A bound of a judged figure: `value`, and so many times the fdatasync that was measured beside it. */
export interface Bound {
  value: number
  fdatasyncs?: number
}

/** One figure that is judged. */
export interface Measure {
  /** What `--only` and the table call it. */
  name: string
  unit: string
  digits: number
  /** What is judged of one repetition. `baseline` is NaN where there is none. */
  judge(ours: number, baseline: number): number
  /** The judged figure in words; its place is `#`. */
  judged: string
  /** A result that misses it fails the bench. */
  floor: Bound & { at: 'least' | 'most' }
  /** What the floor is on the way to; it fails nothing. */
  goal?: Bound
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
  /** The bounds as figures, with the median of the fdatasyncs beside these repetitions. */
  floor: number
  goal: number | null
  verdict: 'MISS' | 'met' | 'goal met'
}

/** Each repetition is judged by itself, as its two runs had the same machine; their median counts. */
export function judge(measure: Measure, repetitions: readonly Repetition[]): Outcome {
  const ours = repetitions.map((repetition) => repetition.ours[measure.name] ?? Number.NaN)
  const baseline = repetitions.map((repetition) => repetition.baseline[measure.name] ?? Number.NaN)
  const judged = ours.map((figure, index) => measure.judge(figure, baseline[index] ?? Number.NaN))
  const fdatasync = median(repetitions.map((repetition) => repetition.fdatasync))
  const boundOf = ({ value, fdatasyncs = 0 }: Bound): number => value + fdatasyncs * fdatasync
  const floor = boundOf(measure.floor)
  const goal = measure.goal === undefined ? null : boundOf(measure.goal)
  const result = median(judged)
  const holds = (bound: number): boolean => (measure.floor.at === 'least' ? result >= bound : result <= bound)
  const verdict = !holds(floor) ? 'MISS' : goal !== null && holds(goal) ? 'goal met' : 'met'
  return { measure, ours, baseline, judged, floor, goal, verdict }
}
