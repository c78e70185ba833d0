/** Levels of a document that anything of ours, or of those who read it, has to bear. */
const DEEPEST = 500

/** Whether a JSON text nests deeper than it can be written again: JavaScript reads ten times of what it writes. */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * DEEPEST) return false
  let depth = 0
  let quoted = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (quoted) {
      if (code === BACKSLASH) index++
      else if (code === QUOTE) quoted = false
    } else if (code === QUOTE) quoted = true
    else if (code === BRACKET || code === BRACE) {
      if (++depth > DEEPEST) return true
    } else if (code === BRACKET + 2 || code === BRACE + 2) depth--
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Two after each comes the one that closes it. */
const BRACKET = 0x5b
const BRACE = 0x7b
