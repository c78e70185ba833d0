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
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (quoted) {
      if (code === BACKSLASH) at++
      else if (code === QUOTE) quoted = false
    } else if (code === QUOTE) quoted = true
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > DEPTH_MAX) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}
