import { CLOSE_BRACE, CLOSE_BRACKET, endOfString, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './scan.ts'

/** Levels of a document that our code, and the code of those who read it, has to bear. */
export const DEEPEST = 500

/**
 * Whether a JSON text nests deeper than it can be written again: `JSON.parse` accepts about ten times the nesting that
 * `JSON.stringify` can write. It looks at the text, so that the parser never meets what is too deep.
 */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * DEEPEST) return false
  let depth = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) index = endOfString(text, index) - 1
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > DEEPEST) return true
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return false
}
