import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Fault } from '../../checker/history.ts'
import type { Evidence } from './evidence.ts'

/** Errors that only a bug causes. */
const MISTAKES = new Set(['TypeError', 'ReferenceError', 'RangeError', 'SyntaxError', 'AssertionError'])
/** The last words of a program that ends for no reason that it knows. */
const UNEXPECTED = 'unexpected, and worth a report'

/** No line of the log may show a bug of the program. */
export function logged({ world: { folder } }: Evidence): Fault[] {
  const lines = readFileSync(path.join(folder, 'sidecar.log'), 'utf8').split('\n')
  return lines
    .filter((line) => line.includes(UNEXPECTED) || (line.includes('"stack"') && MISTAKES.has(typeOf(line))))
    .map((line) => ({ invariant: 'log', message: line.slice(0, 500) }))
}

/** A kill may have cut the line in two. */
function typeOf(line: string): string {
  try {
    const { err } = JSON.parse(line) as { err?: { type?: unknown } }
    return String(err?.type)
  } catch {
    return ''
  }
}
