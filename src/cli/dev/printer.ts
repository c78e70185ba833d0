import { styleOf } from '../events.ts'
import { cut, pad, visible, type Paint, type Style } from '../terminal.ts'
import { span } from '../text.ts'
import { nextStep } from './advice.ts'
import type { CallbackDone, DevRecord, FactSeen, RunFailed, ToolAnswered } from './record.ts'

/** Characters of each column. The detail after them uses the rest of the screen. */
interface Layout {
  time: number
  kind: number
  type: number
  session: number
  result: number
  ms: number
}

const WIDE: Layout = { time: 8, kind: 8, type: 24, session: 24, result: 14, ms: 6 }
/** Fits 80 columns. */
const NARROW: Layout = { time: 7, kind: 8, type: 20, session: 16, result: 12, ms: 6 }
const GAP = '  '
/** A session without a title is shown by this many characters of its id. */
export const SHORT_ID = 8

/** A pipe has no width; there texts of the agent are cut to this length. */
const LONGEST = 180
/** With less space than this the detail is omitted. */
const SHORTEST = 8

export interface Screen {
  /** The zero of the printed times, milliseconds on our wall clock; null: the time of day is printed. */
  start: number | null
  width: number | null
  paint: Paint
}

/** The titles of the columns below. */
export function renderTitles(screen: Screen): string {
  const { start, paint } = screen
  const layout = layoutFor(screen)
  const titles: [string, number, 'left' | 'right'][] = [
    [start === null ? 'time' : 'seconds', layout.time, 'right'],
    ['what', layout.kind, 'left'],
    ['type', layout.type, 'left'],
    ['session', layout.session, 'left'],
    [start === null ? 'answer' : 'by', layout.result, 'left'],
    ['took', layout.ms, 'right'],
  ]
  return paint('dim', titles.map(([title, size, side]) => pad(title, size, side)).join(GAP))
}

/** One record as one line: time, kind, type, session, origin, duration. */
export function renderRecord(record: DevRecord, screen: Screen): string {
  const { start, width, paint } = screen
  const layout = layoutFor(screen)
  const sizes = Object.values(layout) as number[]
  const used = sizes.reduce((sum, size) => sum + size + GAP.length, 0)
  const cells = cellsOf(record)
  const left = (width ?? LONGEST) - used
  const detail = left < SHORTEST ? '' : cut(visible(cells.detail), left)
  const painted = (style: Style | null, text: string): string => (style === null ? text : paint(style, text))
  return [
    paint('dim', pad(timeOf(record.at, start), layout.time, 'right')),
    painted(cells.kind.style, pad(cells.kind.text, layout.kind)),
    painted(cells.type.style, column(cells.type.text, layout.type)),
    painted(cells.quiet ? 'dim' : null, column(record.session, layout.session)),
    painted(cells.result.style, column(cells.result.text, layout.result)),
    paint('dim', pad(cells.ms === null ? '' : span(cells.ms), layout.ms, 'right')),
    ...(detail === '' ? [] : [paint('dim', detail)]),
  ]
    .join(GAP)
    .trimEnd()
}

function timeOf(at: number, start: number | null): string {
  return start === null ? new Date(at).toTimeString().slice(0, 8) : ((at - start) / 1000).toFixed(3)
}

function layoutFor({ start, width }: Screen): Layout {
  const needed = Object.values(WIDE).reduce((sum: number, size: number) => sum + size + GAP.length, 0)
  const layout = width === null || width >= needed ? WIDE : NARROW
  return start === null ? { ...layout, session: SHORT_ID } : layout
}

function column(text: string, width: number): string {
  return pad(cut(visible(text), width), width)
}

interface Cell {
  text: string
  style: Style | null
}

interface Cells {
  kind: Cell
  type: Cell
  result: Cell
  ms: number | null
  detail: string
  /** A line that only confirms the one above. */
  quiet: boolean
}

function cellsOf(record: DevRecord): Cells {
  if (record.kind === 'fact') return factCells(record)
  if (record.kind === 'callback') return callbackCells(record)
  return record.kind === 'tool' ? toolCells(record) : runCells(record)
}

function factCells({ type, channel, ms, id }: FactSeen): Cells {
  return {
    kind: { text: 'fact', style: 'cyan' },
    type: { text: type, style: styleOf(type) },
    result: { text: channel ?? '', style: null },
    ms,
    detail: id,
    quiet: false,
  }
}

function callbackCells(record: CallbackDone): Cells {
  const { type, status, error, ms, outcome } = record
  const well = outcome === 'delivered'
  const parts = [nextStep(record), error ?? ''].filter((part) => part !== '')
  return {
    kind: { text: 'callback', style: well ? 'dim' : 'red' },
    type: { text: type, style: 'dim' },
    result: { text: `app ${status ?? 'no answer'}`, style: well ? 'green' : 'red' },
    ms,
    detail: parts.join(', '),
    quiet: well,
  }
}

function toolCells({ name, outcome, answer, ms }: ToolAnswered): Cells {
  const well = outcome === 'answered'
  const failed = well && answer?.kind === 'error'
  return {
    kind: { text: 'tool', style: 'magenta' },
    type: { text: name, style: null },
    result: { text: failed ? 'answered error' : outcome, style: failed ? 'yellow' : well ? 'green' : 'red' },
    ms,
    detail: answer?.text ?? '',
    quiet: false,
  }
}

const AFTER_RUN = {
  output: () => '',
  deferred: () => 'the app answers later',
  rejected: () => 'not repeated: the agent gets an error',
  failed: (attempt: number) => `attempt ${attempt}, again with the same idempotency-key`,
}

function runCells({ report }: RunFailed): Cells {
  const { tool, outcome, status, error, seconds, attempt } = report
  const next = AFTER_RUN[outcome](attempt)
  return {
    kind: { text: 'tool', style: 'magenta' },
    type: { text: tool, style: null },
    result: { text: `app ${status ?? 'no answer'}`, style: outcome === 'deferred' ? 'yellow' : 'red' },
    ms: seconds * 1000,
    detail: error === null || status !== null ? next : `${next}, ${error}`,
    quiet: false,
  }
}
