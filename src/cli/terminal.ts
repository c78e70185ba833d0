import { styleText } from 'node:util'
import type { Dialogue } from './dialogue.ts'

export type Style = Parameters<typeof styleText>[0]

/** The output of a command. Results go to `out`, messages to `err`. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
  /** Columns of the screen; null in a pipe, where lines have any length. */
  width: number | null
  paint: Paint
  /** Like `paint`, for `err`. */
  paintErr: Paint
  /** Opens a dialogue with the person at the terminal; null if there is none. Questions go to `err`. */
  readonly dialogue?: (() => Promise<Dialogue>) | null
}

/** Colours a text, or leaves it unchanged. */
export type Paint = (style: Style, text: string) => string

export const plain: Paint = (_style, text) => text
export const coloured: Paint = (style, text) => styleText(style, text, { validateStream: false })

type Process = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'exit'>

export function processTerminal(process: Process): Terminal {
  // `events | head` closes the pipe: this ends the command without a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  let watched = false
  /** Opened when first used: it takes a tenth of the time of `--help`. */
  const stderr = (): Process['stderr'] => {
    // If standard error is closed or full, log lines are lost; the process does not stop.
    if (!watched) process.stderr.on('error', () => undefined)
    watched = true
    return process.stderr
  }
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void stderr().write(text),
    width: process.stdout.isTTY ? process.stdout.columns : null,
    paint: wantsColour(process.stdout, process.env) ? coloured : plain,
    paintErr: (style, text) => (wantsColour(stderr(), process.env) ? coloured : plain)(style, text),
    get dialogue() {
      // Standard error is checked first, because checking standard input opens it.
      if (!stderr().isTTY || !process.stdin.isTTY) return null
      return async () => (await import('./dialogue.ts')).openDialogue(process)
    },
  }
}

/** https://no-color.org, and FORCE_COLOR as in Node. */
function wantsColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false
  if ((env['FORCE_COLOR'] ?? '') !== '') return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

// What the agent wrote may hold escape sequences that move a cursor or retitle a window.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g

/** Any text as one line of visible characters. */
export function visible(text: string): string {
  return text.replace(CONTROL, ' ').trim()
}

/** A JSON document on one line, with invisible characters as escapes. */
export function jsonLine(value: unknown): string {
  const escape = (text: string): string => `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${JSON.stringify(value).replace(CONTROL, (run) => Array.from(run, escape).join(''))}\n`
}

/** At most `width` characters; a cut is marked. */
export function cut(text: string, width: number): string {
  const letters = Array.from(text)
  return letters.length <= width ? text : `${letters.slice(0, Math.max(0, width - 1)).join('')}…`
}

export function pad(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - Array.from(text).length))
  return side === 'left' ? text + space : space + text
}
