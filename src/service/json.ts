import { parseJson } from '../core/json.ts'

/** Levels of nesting in an answer. Beyond it, code that walks or writes it again by recursion would overflow its stack. */
const DEPTH_MAX = 256

/**
 * Reads the JSON text of an answer.
 * @throws {Error} on text that is not JSON, or that is nested too deeply.
 */
export function readJson(text: string): unknown {
  if (tooDeep(text)) throw new Error(`nested more than ${DEPTH_MAX} levels deep`)
  return parseJson(text)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Looks at the text, not at the value, so that the parser never meets what is too deep for it. */
function tooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > DEPTH_MAX) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** Where the string that begins at `start` ends; most of a text is strings, and this leaps over them. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}
