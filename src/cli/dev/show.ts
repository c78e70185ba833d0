import type { Context } from '../context.ts'
import { jsonLine, type Paint, type Terminal } from '../terminal.ts'
import { count, span } from '../text.ts'
import { asTyped } from '../working-folder.ts'
import { isComplete, type Comparison } from './compare.ts'
import { renderRecord, renderTitles } from './printer.ts'
import type { DevRecord } from './record.ts'

/** The addresses of the parts of the demonstration. */
export interface Addresses {
  service: string
  admin: string
  app: string
  /** Of the service. */
  token: string
}

/** The output of `dev`, in this order. */
export interface Show {
  started(addresses: Addresses): void
  record(record: DevRecord): void
  /** `took`: milliseconds since the start. */
  ended(comparison: Comparison, took: number): void
  /** The tour is over and everything keeps running. */
  staying(console: { url: string; usual: boolean }): void
}

/** For people. */
export function showToPeople({ terminal, env }: Context, start: number): Show {
  const { paint } = terminal
  const screen = { start, width: terminal.width, paint }
  const row = (name: string, url: string, about: string): string =>
    `  ${paint('bold', name.padEnd(8))}  ${paint('cyan', url.padEnd(24))}  ${paint('dim', about)}\n`
  return {
    started({ service, admin, app, token }) {
      terminal.out(
        [
          '\n',
          row('service', service, `emulated; token ${token}`),
          row('sidecar', admin, 'console, API and metrics'),
          row('app', app, 'one handler, two tools'),
          '\n',
        ].join(''),
      )
      terminal.out(`${renderTitles(screen)}\n`)
    },
    record: (record) => terminal.out(`${renderRecord(record, screen)}\n`),
    ended: (comparison, took) => terminal.out(renderSummary(comparison, took, paint)),
    staying({ url: admin, usual }) {
      const url = usual ? '' : ` --url ${admin}`
      const commands = ['status', 'events --follow', 'calls'].map(
        (one) => `    session-sidecar ${one}${url}\n`,
      )
      terminal.out(
        `\n  Still running: ${paint('cyan', admin)}. Ctrl-C ends it. Meanwhile, in another terminal:\n` +
          asTyped(commands.join(''), env),
      )
    },
  }
}

/** For programs: one JSON object per line, with its `kind`. */
export function showToPrograms(terminal: Terminal): Show {
  const line = (value: object): void => terminal.out(jsonLine(value))
  return {
    started: (addresses) => line({ kind: 'started', ...addresses }),
    record: line,
    ended(comparison, took) {
      const { facts, expected, missing, repeated, calls, underWay } = comparison
      line({
        kind: 'summary',
        complete: isComplete(comparison),
        facts: facts.made,
        delivered: facts.delivered,
        expected: expected.length,
        missing,
        repeated,
        calls,
        under_way: underWay,
        ms: took,
      })
    },
    staying: () => undefined,
  }
}

/** At most this many names of missing facts are printed. */
const NAMED = 10

/** The result of a tour, compared with the emulator's own ledger. */
export function renderSummary(comparison: Comparison, took: number, paint: Paint): string {
  const { facts, expected, missing, repeated, calls, underWay } = comparison
  const mark = (well: boolean): string => (well ? paint('green', '✓') : paint('red', '✗'))
  const lines = [
    `${mark(facts.delivered === facts.made)} ${facts.delivered} of ${count(facts.made, 'fact')} delivered`,
    `${mark(missing.length === 0)} ${expected.length - missing.length} of ${count(expected.length, 'expected fact')} delivered (session statuses are not compared)`,
    `${mark(calls.answered === calls.asked)} ${calls.answered} of ${count(calls.asked, 'function call')} answered`,
    `${mark(underWay.length === 0)} ${underWay.length === 0 ? 'everything is idle' : `${underWay.length} still under way`}`,
    ...(repeated === 0 ? [] : [`${mark(true)} ${count(repeated, 'callback')} came more than once (same id)`]),
    ...missing.slice(0, NAMED).map((fact) => `    ${paint('red', 'missing')}  ${fact}`),
    ...(missing.length > NAMED ? [`    and ${missing.length - NAMED} more`] : []),
  ]
  return `\n${lines.map((line) => `  ${line}`).join('\n')}\n  ${paint('dim', `in ${span(took)}`)}\n`
}
