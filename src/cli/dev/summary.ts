import type { Paint } from '../terminal.ts'
import { count, span } from '../text.ts'
import type { Comparison } from './compare.ts'

/** At most this many names of missing facts are printed. */
const NAMED = 10

/** The result of a tour, compared with the emulator's own ledger. */
export function renderSummary(comparison: Comparison, took: number, paint: Paint): string {
  const { facts, expected, missing, repeated, calls, underWay } = comparison
  const mark = (well: boolean): string => (well ? paint('green', '✓') : paint('red', '✗'))
  const lines = [
    `${mark(facts.delivered === facts.made)} ${facts.delivered} of ${count(facts.made, 'fact')} delivered`,
    `${mark(missing.length === 0)} ${expected.length - missing.length} of ${count(expected.length, 'fact')} expected by the emulator's ledger`,
    `${mark(calls.answered === calls.asked)} ${calls.answered} of ${count(calls.asked, 'function call')} answered`,
    `${mark(underWay.length === 0)} ${underWay.length === 0 ? 'everything is idle' : `${underWay.length} still under way`}`,
    ...(repeated === 0 ? [] : [`${mark(true)} ${count(repeated, 'callback')} came more than once (same id)`]),
    ...missing.slice(0, NAMED).map((fact) => `    ${paint('red', 'missing')}  ${fact}`),
    ...(missing.length > NAMED ? [`    and ${missing.length - NAMED} more`] : []),
  ]
  return `\n${lines.map((line) => `  ${line}`).join('\n')}\n  ${paint('dim', `in ${span(took)}`)}\n`
}
