import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './scan.ts'

/**
 * The texts of members of a JSON object, cut out as they stand: several times faster than to parse them and write them
 * anew, and no digit is touched. `text` must be valid JSON of an object. What is not there is `undefined`; as in
 * `JSON.parse`, the last one of a name counts.
 */
export function memberTexts(text: string, names: readonly string[]): (string | undefined)[] {
  const found: (string | undefined)[] = names.map(() => undefined)
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === CLOSE_BRACE) break
    if (code !== QUOTE) {
      at++
      continue
    }
    const keyEnd = endOfString(text, at)
    const key = nameOf(text.slice(at, keyEnd))
    at = keyEnd
    while (text.charCodeAt(at) !== COLON) at++
    at = skipSpace(text, at + 1)
    const end = endOfValue(text, at)
    const index = names.indexOf(key)
    if (index !== -1) found[index] = text.slice(at, end)
    at = end
  }
  return found
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first === QUOTE) return endOfString(text, from)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfNested(text, from)
  let at = from
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === CLOSE_BRACE || isSpace(code)) break
  }
  return at
}

function endOfNested(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1
  }
  return text.length
}
