import { CLOSE_BRACE, COLON, endOfNested, endOfString, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './scan.ts'

const COMMA = 0x2c

/**
 * The unchanged texts of members of a JSON object. Cutting them out is several times faster than
 * parsing and writing them, and keeps every digit. `text` must be valid JSON of an object. A
 * missing member is `undefined`; as in `JSON.parse`, the last one of a name counts.
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
    const key = text.slice(at + 1, keyEnd - 1)
    const index = names.indexOf(key.includes('\\') ? String(JSON.parse(`"${key}"`)) : key)
    at = keyEnd
    while (text.charCodeAt(at) !== COLON) at++
    at = skipSpace(text, at + 1)
    const end = endOfValue(text, at)
    if (index !== -1) found[index] = text.slice(at, end)
    at = end
  }
  return found
}

/** The positions of objects and arrays with given names, in any object of a text; not those inside such a member. */
export class MemberSpans {
  readonly #text: string
  readonly #opening: RegExp
  #span: Span | undefined
  #from = 0

  /** `names`: of letters alone. */
  constructor(text: string, names: readonly string[]) {
    this.#text = text
    this.#opening = new RegExp(`"(?:${names.join('|')})"\\s*:\\s*[[{]`, 'g')
  }

  /** The member that holds the character at `at`. Call it with rising `at`: the text is scanned once. */
  around(at: number): Span | undefined {
    while (this.#from <= at) {
      this.#span = this.#next()
      this.#from = this.#span?.end ?? Infinity
    }
    return this.#span !== undefined && this.#span.start <= at ? this.#span : undefined
  }

  #next(): Span | undefined {
    this.#opening.lastIndex = this.#from
    // No string of valid JSON contains a match. A key may end with one, as in `"a\"arguments":{`: that member is
    // passed on as well.
    if (!this.#opening.test(this.#text)) return undefined
    const start = this.#opening.lastIndex - 1
    return { start, end: endOfNested(this.#text, start) }
  }
}

/** A part of a text: from `start` to before `end`. */
export interface Span {
  start: number
  end: number
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
