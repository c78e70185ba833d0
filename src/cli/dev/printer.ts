import { styleOf } from '../events.ts'
import { cut, pad, visible, type Paint } from '../terminal.ts'
import { span } from '../text.ts'
import type { CallbackDone, DevRecord, FactSeen, ToolAnswered } from './record.ts'

/** Characters of each column. The last one takes what is left of the screen. */
const TIME = 8
const KIND = 8
const TYPE = 24
const SESSION = 22
const RESULT = 14
const MS = 7

/** Where a pipe has no width, texts of the agent are cut here all the same. */
const LONGEST = 160

export interface Screen {
  /** Milliseconds on our wall clock that the times are counted from. */
  start: number
  width: number | null
  paint: Paint
}

/** One record as one line: when, what, of which session, by whom, how long it took. */
export function renderRecord(record: DevRecord, screen: Screen): string {
  const { paint } = screen
  const time = paint('dim', pad(((record.at - screen.start) / 1000).toFixed(3), TIME, 'right'))
  const cells = cellsOf(record, paint)
  const session = pad(cut(visible(record.session), SESSION), SESSION)
  const used = TIME + KIND + TYPE + SESSION + RESULT + MS + 2 * 6
  const detail = cut(visible(cells.detail), Math.max(0, (screen.width ?? LONGEST) - used))
  const line = [
    time,
    cells.kind,
    cells.type,
    cells.quiet ? paint('dim', session) : session,
    cells.result,
    cells.ms,
  ]
  return [...line, paint('dim', detail)].join('  ').trimEnd()
}

interface Cells {
  kind: string
  type: string
  result: string
  ms: string
  detail: string
  /** A line that merely confirms the one above. */
  quiet: boolean
}

function cellsOf(record: DevRecord, paint: Paint): Cells {
  if (record.kind === 'fact') return factCells(record, paint)
  return record.kind === 'callback' ? callbackCells(record, paint) : toolCells(record, paint)
}

function factCells({ type, channel, ms, id }: FactSeen, paint: Paint): Cells {
  const style = styleOf(type)
  const name = column(type, TYPE)
  return {
    kind: paint('cyan', pad('fact', KIND)),
    type: style === null ? name : paint(style, name),
    result: pad(channel ?? '', RESULT),
    ms: took(ms, paint),
    detail: id,
    quiet: false,
  }
}

function callbackCells(
  { type, handler, status, error, ms, attempt, result }: CallbackDone,
  paint: Paint,
): Cells {
  const well = result === 'delivered'
  const outcome = column(`${handler} ${status ?? 'no answer'}`, RESULT)
  const again = result === 'retry' ? 'tried again' : 'dead letter'
  const tries = attempt > 1 ? `attempt ${attempt}` : ''
  return {
    kind: paint(well ? 'dim' : 'red', pad('callback', KIND)),
    type: paint('dim', column(type, TYPE)),
    result: paint(well ? 'green' : 'red', outcome),
    ms: took(ms, paint),
    detail: [well ? '' : again, tries, error ?? ''].filter((part) => part !== '').join(', '),
    quiet: true,
  }
}

function toolCells({ name, state, outcome, output, ms }: ToolAnswered, paint: Paint): Cells {
  const well = state === 'answered'
  return {
    kind: paint('magenta', pad('tool', KIND)),
    type: column(name, TYPE),
    result: paint(well ? 'green' : 'red', column(well ? state : (outcome ?? state), RESULT)),
    ms: took(ms, paint),
    detail: output ?? '',
    quiet: false,
  }
}

function column(text: string, width: number): string {
  return pad(cut(visible(text), width), width)
}

function took(ms: number | null, paint: Paint): string {
  return paint('dim', pad(ms === null ? '' : span(ms), MS, 'right'))
}
