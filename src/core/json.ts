/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [key: string]: Json | undefined }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Numbers of 16 digits and more may not fit a double. */
const LONG_NUMBER = /\d{16}/
/** So many of a number's digits a double always holds. */
const DIGITS = 15

interface Source {
  source?: string
}

/** Node has it; the compiler's library does not know it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/** Some numbers are only spelled otherwise, as `2.50`: those stay numbers. */
const keepDigits = (_key: string, value: unknown, { source = '' }: Source): unknown =>
  typeof value === 'number' && significant(source) > DIGITS && String(value) !== source
    ? rawJSON(source)
    : value

/** Digits that say something: without zeros before and after, and the exponent. One pass: a number may have millions. */
function significant(source: string): number {
  let digits = 0
  let first = 0
  let last = 0
  for (const char of source) {
    if (char === 'e' || char === 'E') break
    if (char < '0' || char > '9') continue
    digits++
    if (char === '0') continue
    if (first === 0) first = digits
    last = digits
  }
  return first === 0 ? 0 : last - first + 1
}

/**
 * Parses JSON and keeps every digit of numbers that a double cannot hold (they become raw JSON, which
 * `JSON.stringify` writes as it was read). The usual text, without such a number, takes the fast path.
 * @throws {SyntaxError}
 */
export function parseJson(text: string): unknown {
  return LONG_NUMBER.test(text) ? JSON.parse(text, keepDigits as never) : JSON.parse(text)
}

/** What was parsed so, as JSON.parse would have given it: for functions of a program, to which a number is a number. */
export function withPlainNumbers(value: Json | undefined): Json | undefined {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as Json)
}

/** A text with something in it. One with half a surrogate pair is none: no database, path or header can carry it. */
export function stringOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : null
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
