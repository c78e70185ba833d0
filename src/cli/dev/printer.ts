import type { CallbackOutcome } from '../../core/observer.ts'
import { styleOf } from '../events.ts'
import { cut, pad, visible, type Paint, type Style } from '../terminal.ts'
import { span } from '../text.ts'
import type { CallbackDone, DevRecord, FactSeen, ToolAnswered } from './record.ts'

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

/** A pipe has no width; there texts of the agent are cut to this length. */
const LONGEST = 180
/** With less space than this the detail is omitted. */
const SHORTEST = 8

export interface Screen {
  /** The zero of the printed times, milliseconds on our wall clock. */
  start: number
  width: number | null
  paint: Paint
}

/** The titles of the columns below. */
export function renderTitles({ width, paint }: Screen): string {
  const layout = layoutFor(width)
  const titles: [string, number, 'left' | 'right'][] = [
    ['seconds', layout.time, 'right'],
    ['what', layout.kind, 'left'],
    ['type', layout.type, 'left'],
    ['session', layout.session, 'left'],
    ['by', layout.result, 'left'],
    ['took', layout.ms, 'right'],
  ]
  return paint('dim', titles.map(([title, size, side]) => pad(title, size, side)).join(GAP))
}

/** One record as one line: time, kind, type, session, origin, duration. */
export function renderRecord(record: DevRecord, screen: Screen): string {
  const { start, width, paint } = screen
  const layout = layoutFor(width)
  const sizes = Object.values(layout) as number[]
  const used = sizes.reduce((sum, size) => sum + size + GAP.length, 0)
  const cells = cellsOf(record)
  const left = (width ?? LONGEST) - used
  const detail = left < SHORTEST ? '' : cut(visible(cells.detail), left)
  const painted = (style: Style | null, text: string): string => (style === null ? text : paint(style, text))
  return [
    paint('dim', pad(((record.at - start) / 1000).toFixed(3), layout.time, 'right')),
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

function layoutFor(width: number | null): Layout {
  const needed = Object.values(WIDE).reduce((sum: number, size: number) => sum + size + GAP.length, 0)
  return width === null || width >= needed ? WIDE : NARROW
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
  return record.kind === 'callback' ? callbackCells(record) : toolCells(record)
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

/** The consequence of a failed callback. */
const NEXT: Record<Exclude<CallbackOutcome, 'delivered'>, string> = {
  retry: 'tried again',
  unreachable: 'waits for the handler',
  paused: 'the handler is paused',
  dead: 'dead letter',
}

function callbackCells({ type, handler, status, error, ms, attempt, outcome }: CallbackDone): Cells {
  const well = outcome === 'delivered'
  const parts = [
    ...(outcome === 'delivered' ? [] : [NEXT[outcome]]),
    ...(attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(error === null ? [] : [error]),
  ]
  return {
    kind: { text: 'callback', style: well ? 'dim' : 'red' },
    type: { text: type, style: 'dim' },
    result: { text: `${handler} ${status ?? 'no answer'}`, style: well ? 'green' : 'red' },
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
