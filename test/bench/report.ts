import { arch, availableParallelism, cpus } from 'node:os'
import { renderTable, type Column } from '../../src/cli/table.ts'
import { plain } from '../../src/cli/terminal.ts'
import type { Disk } from './disk.ts'
import type { Bound, Outcome } from './measure.ts'
import { median } from './statistics.ts'

const COLUMNS: readonly Column<Outcome>[] = [
  { title: 'WORK', cell: ({ measure }) => measure.name },
  { title: 'OURS', cell: ({ measure, ours }) => figure(ours, measure), align: 'right' },
  { title: 'BASELINE', cell: ({ measure, baseline }) => figure(baseline, measure), align: 'right' },
  { title: '', cell: ({ measure }) => measure.unit },
  { title: 'RESULT', cell: ({ measure, judged }) => inWords(measure.judged, median(judged)) },
  { title: 'FLOOR', cell: ({ measure: { floor }, floor: at }) => inFigures(floor.at, floor, at) },
  {
    title: 'GOAL',
    cell: ({ measure: { floor, goal }, goal: at }) =>
      goal === undefined || at === null ? '' : inFigures(floor.at, goal, at),
  },
  { title: 'SPREAD', cell: ({ judged }) => `${short(Math.min(...judged))} .. ${short(Math.max(...judged))}` },
  { title: '', cell: ({ verdict }) => verdict },
]

/** One row for each outcome: medians, what is judged of them, and how far the repetitions lay apart. */
export function renderOutcomes(outcomes: readonly Outcome[]): string {
  return renderTable(outcomes, COLUMNS, { width: null, paint: plain })
}

/** One outcome in a line. */
export function summarise({ measure, ours, baseline, judged, verdict }: Outcome): string {
  const figures = [figure(ours, measure), figure(baseline, measure)].filter((text) => text !== '')
  const result = inWords(measure.judged, median(judged))
  return `${measure.name}: ${figures.join(' beside ')} ${measure.unit}, ${result}, ${verdict}`
}

/** What was measured, and on what. */
export function renderMachine(disks: readonly Disk[], runs: number): string {
  const paced = short(median(disks.map((disk) => disk.paced)))
  const busy = short(median(disks.map((disk) => disk.busy)))
  return (
    `medians of ${runs} interleaved repetitions; ${machine()}\n` +
    `fdatasync p50 ${paced} ms (4 KiB appended every 5 ms, where the store is; ${busy} ms back to back)\n`
  )
}

export function machine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown'
  return `${availableParallelism()} cores (${model}, ${arch()}), Node ${process.version}`
}

function figure(values: readonly number[], { digits }: { digits: number }): string {
  const value = median(values)
  return Number.isNaN(value) ? '' : value.toFixed(digits)
}

/** As `≥ 0.75`, or `≤ 1.25 (0.5 + 2.5 × fdatasync)` where the disk is part of the bound. */
function inFigures(at: 'least' | 'most', { value, fdatasyncs }: Bound, figure: number): string {
  const sign = at === 'least' ? '≥' : '≤'
  return fdatasyncs === undefined
    ? `${sign} ${value}`
    : `${sign} ${short(figure)} (${value} + ${fdatasyncs} × fdatasync)`
}

function inWords(words: string, value: number): string {
  return words.replace('#', short(value))
}

/** Two digits after the point for what is small, none for what is large. */
function short(value: number): string {
  return value.toFixed(Math.abs(value) < 20 ? 2 : 0)
}
