import { jsonLine } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'
import { isComplete, type Comparison } from './compare.ts'
import { renderRecord, renderTitles } from './printer.ts'
import type { DevRecord } from './record.ts'
import { renderSummary } from './summary.ts'

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
  staying(): void
}

/** For people. */
export function showToPeople(
  terminal: Terminal,
  { start, console }: { start: number; console: () => { url: string; usual: boolean } },
): Show {
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
    staying() {
      const { url: admin, usual } = console()
      const url = usual ? '' : ` --url ${admin}`
      terminal.out(
        [
          `\n  Still running: ${paint('cyan', admin)}. Ctrl-C ends it. Meanwhile, in another terminal:\n`,
          ...['status', 'events --follow', 'calls'].map((command) => `    npm start -- ${command}${url}\n`),
        ].join(''),
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
