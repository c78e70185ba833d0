import type { Report } from '../../conform/run.ts'
import type { State, Verdict } from '../../conform/verdict.ts'
import { cut, pad, visible, type Style, type Terminal } from '../terminal.ts'
import { count } from '../text.ts'

export type Counts = Readonly<Record<State, number>>

/** The number of rules in each state. */
export function countStates({ verdicts }: Report): Counts {
  const counts = { holds: 0, differs: 0, open: 0, 'not tried': 0 }
  for (const { state } of verdicts) counts[state]++
  return counts
}

const STYLES: Readonly<Record<State, Style>> = {
  holds: 'green',
  differs: ['bold', 'red'],
  open: 'cyan',
  'not tried': 'dim',
}

interface Face {
  terminal: Pick<Terminal, 'paint' | 'width'>
  verbose: boolean
}

/** A line for each rule, each difference with the request to repeat, and the totals. */
export function renderReport(report: Report, face: Face): string {
  const shown = report.verdicts.filter(({ state }) => face.verbose || state !== 'not tried')
  const lines = shown.flatMap((verdict) => [row(verdict, face), ...difference(verdict, face)])
  const reasons = face.verbose ? [] : untried(report, face)
  return [...lines, ...reasons, '', ...summary(report, face)].map((line) => `${line}\n`).join('')
}

function row({ id, state, text, note }: Verdict, { terminal }: Face): string {
  const said = note === null ? text : `${text} ${state === 'open' ? '→' : '—'} ${note}`
  const room = terminal.width === null ? Infinity : Math.max(20, terminal.width - 18)
  const rest = Number.isFinite(room) ? cut(visible(said), room) : visible(said)
  return `${id} ${terminal.paint(STYLES[state], pad(state, 9))}  ${rest}`
}

function difference({ difference: seen, check }: Verdict, { terminal }: Face): string[] {
  if (seen === null) return []
  const { paint } = terminal
  const lines = [
    ['expected', seen.expected],
    ['seen', seen.seen],
    ['check', check ?? ''],
    ['request', seen.request_id ?? 'without an id'],
    ['repeat', seen.curl ?? 'no single request shows it'],
  ] as const
  return lines.map(([name, value]) => `       ${paint('dim', pad(name, 9))}  ${visible(value)}`)
}

/** The rules that were not tried, by reason. */
function untried({ verdicts }: Report, { terminal }: Face): string[] {
  const byReason = Map.groupBy(
    verdicts.filter(({ state }) => state === 'not tried'),
    ({ note }) => note ?? '',
  )
  return [...byReason].flatMap(([why, some]) => {
    const head = `${terminal.paint('dim', pad('not tried', 16))}  ${visible(why)} (${some.length})`
    return [
      head,
      ...wrapped(
        some.map(({ id }) => id),
        terminal.width ?? 100,
      ),
    ]
  })
}

const INDENT = ' '.repeat(18)

function wrapped(ids: readonly string[], width: number): string[] {
  const perLine = Math.max(1, Math.floor((width - INDENT.length) / 7))
  return Array.from(
    { length: Math.ceil(ids.length / perLine) },
    (_, line) => `${INDENT}${ids.slice(line * perLine, (line + 1) * perLine).join(' ')}`,
  )
}

function summary(report: Report, { terminal }: Face): string[] {
  const { paint } = terminal
  const { holds, differs, open, 'not tried': left } = countStates(report)
  const sum = [
    `${holds} hold`,
    paint(differs > 0 ? STYLES.differs : 'dim', `${differs} differ${differs === 1 ? 's' : ''}`),
    `${open} open`,
    `${left} not tried`,
  ].join(', ')
  const { made, most } = report.sessions
  const sessions = made === 0 ? '' : `; ${count(made, 'session')} made, at most ${most} at one time`
  const lines = [
    `${sum}: ${report.deployment}, ${count(report.requests, 'request')} in ${report.seconds} s${sessions}`,
  ]
  if (report.ended !== null)
    lines.push(paint('yellow', `${report.ended}: the remaining rules were not tried`))
  if (made > 0 && report.left.length === 0) lines.push('all created resources were removed')
  for (const thing of report.left)
    lines.push(paint(STYLES.differs, `could not be removed: ${visible(thing)}`))
  return lines
}
