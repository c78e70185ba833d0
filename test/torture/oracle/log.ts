import { readFileSync } from 'node:fs'
import type { Fault } from '../../checker/history.ts'
import type { Round } from './evidence.ts'

/** Errors that only a bug causes. */
const MISTAKES = new Set(['TypeError', 'ReferenceError', 'RangeError', 'SyntaxError', 'AssertionError'])
/** The last words of a program that ends for no reason that it knows. */
const UNEXPECTED = 'unexpected error, please report it'

/** No line of the log may show a bug of the program. */
export function logged({ world: { logs } }: { world: Pick<Round, 'logs'> }): Fault[] {
  return logs
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
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
