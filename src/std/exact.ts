import { MemberSpans } from './member.ts'
import { endOfString } from './scan.ts'
import { Verbatim } from './verbatim.ts'

/** Node has it; the compiler's library does not know it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/**
 * A double cannot hold every number with this many digits, with or without a point. With an exponent of three digits
 * the number may be too large or too small.
 */
const LONG = 16
const EXPONENT = /[eE][+-]?\d{3}/g
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/**
 * A double from `NORMAL` on always holds the first number of significant digits; the second number distinguishes it from
 * its neighbours.
 */
const DIGITS = { held: 15, enough: 17 }
/** Smaller doubles have fewer digits: 1.23456789e-320 becomes 1.2347e-320. */
const NORMAL = 2 ** -1022
/**
 * The nth number that is cut out is replaced by n times this value; any number in the text that is as large is cut
 * out too.
 */
const HUGE = 1e300

/** The results of this many short numbers of a text are cached: `[1E400,1E400,…]` takes a third of the time. */
const REMEMBERED = 4096
const SHORT = 24

/** A number, or a whole value, that is cut out of a text, and its replacement in the document. */
interface Taken {
  start: number
  end: number
  value: unknown
}

/**
 * Parses JSON and keeps every digit of numbers that a double cannot hold: they become raw JSON, which `JSON.stringify`
 * writes as it was read. With a reviver, which is called for every value, 1 MiB of `[0,0,…]` with one such number took
 * 30 times a plain parse. Here the numbers are found in the text, the parser gets a placeholder for each, and the
 * placeholders are replaced in the result. Each step is one pass, for any nesting and content.
 *
 * The arguments of a function call have any length, and are only passed on. With `{ verbatim: ['arguments'] }` an
 * object or array of that name that may hold such a number becomes a {@link Verbatim}, whose content is not parsed.
 * 1 MiB of arguments is then parsed and written in 1 to 25 ms, mostly less than twice a plain parse and write. Outside
 * of them, 1 MiB of numbers takes up to 76 ms.
 * @throws {SyntaxError}
 */
export function parseJson(text: string, options: { verbatim?: readonly string[] } = {}): unknown {
  const taken = takeOut(text, options.verbatim)
  if (taken.length === 0) return JSON.parse(text)
  return putBack(parseWithout(taken, text), taken)
}

function takeOut(text: string, verbatim: readonly string[] | undefined): Taken[] {
  const taken: Taken[] = []
  const spans = verbatim === undefined ? null : new MemberSpans(text, verbatim)
  const candidates = new Candidates(text)
  const known = new Map<string, Exact>()
  /** Where the next string opens. */
  let quote = indexOf(text, '"', 0)
  for (let start = candidates.after(0); start < text.length;) {
    const span = spans?.around(start)
    if (span !== undefined) {
      taken.push({ ...span, value: new Verbatim(text.slice(span.start, span.end), parseJson) })
      start = candidates.after(span.end)
      if (quote < span.end) quote = indexOf(text, '"', span.end)
      continue
    }
    let past = 0
    while (quote < start) {
      past = endOfString(text, quote)
      quote = indexOf(text, '"', past)
    }
    const end = past > start ? past : endOfNumber(text, start)
    // Skip digits inside strings, and leave invalid numbers for the parser to refuse.
    if (past <= start) {
      const source = text.slice(start, end)
      let exact = known.get(source)
      if (exact === undefined) {
        exact = exactOf(source)
        if (known.size < REMEMBERED && source.length <= SHORT) known.set(source, exact)
      }
      if (exact.taken) taken.push({ start, end, value: exact.value })
    }
    start = candidates.after(end)
  }
  return taken
}

/** Whether a number is cut out of the text, and its value. */
interface Exact {
  taken: boolean
  value: unknown
}

function exactOf(source: string): Exact {
  const value = heldValue(source)
  const taken = (value === null || Math.abs(value) >= HUGE) && NUMBER.test(source)
  return { taken, value: taken ? (value ?? rawJSON(source)) : null }
}

/** The positions of numbers that a double possibly cannot hold, and of similar text in a string. */
class Candidates {
  readonly #text: string
  #long = -1
  #exponent = -1

  constructor(text: string) {
    this.#text = text
  }

  /** The first at `from` or later; the length of the text when there is none. */
  after(from: number): number {
    if (this.#long < from) this.#long = this.#longAfter(from)
    if (this.#exponent < from) this.#exponent = this.#exponentAfter(from)
    return Math.min(this.#long, this.#exponent)
  }

  /** Checks every 16th character: a run of 16 contains one of them. */
  #longAfter(from: number): number {
    const text = this.#text
    for (let at = from + LONG - 1; at < text.length; at += LONG) {
      if (!isDigit(text.charCodeAt(at))) continue
      let start = at
      while (start > from && isDigit(text.charCodeAt(start - 1))) start--
      let end = at + 1
      while (end < text.length && end - start < LONG && isDigit(text.charCodeAt(end))) end++
      if (end - start >= LONG) return startOfNumber(text, start, from)
    }
    return text.length
  }

  #exponentAfter(from: number): number {
    EXPONENT.lastIndex = from
    if (!EXPONENT.test(this.#text)) return this.#text.length
    return startOfNumber(this.#text, EXPONENT.lastIndex - 1, from)
  }
}

function startOfNumber(text: string, within: number, from: number): number {
  let start = within
  while (start > from && isOfNumber(text.charCodeAt(start - 1))) start--
  return start
}

function endOfNumber(text: string, start: number): number {
  let end = start
  while (end < text.length && isOfNumber(text.charCodeAt(end))) end++
  return end
}

/** A digit, or the decimal point among digits. */
function isDigit(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e
}

function isOfNumber(code: number): boolean {
  return isDigit(code) || code === 0x2d || code === 0x2b || code === 0x65 || code === 0x45
}

function indexOf(text: string, what: string, from: number): number {
  const at = text.indexOf(what, from)
  return at === -1 ? Infinity : at
}

/** The double that holds the number with all its digits; null when none does. */
function heldValue(source: string): number | null {
  const digits = significant(source)
  if (digits > DIGITS.enough) return null
  const value = Number(source)
  if (!Number.isFinite(value) || (value === 0 && digits > 0)) return null
  const holds = digits <= DIGITS.held && (digits === 0 || Math.abs(value) >= NORMAL)
  return holds || String(value) === source ? value : null
}

function parseWithout(taken: readonly Taken[], text: string): unknown {
  let left = ''
  let from = 0
  let count = 0
  for (const { start, end } of taken) {
    left += `${text.slice(from, start)}${++count}e300`
    from = end
  }
  try {
    for (const { value } of taken) if (value instanceof Verbatim) value.check()
    return JSON.parse(left + text.slice(from))
  } catch {
    // The text itself is parsed, without placeholders: the error must name a position in it.
    return JSON.parse(text)
  }
}

function putBack(document: unknown, taken: readonly Taken[]): unknown {
  // Each placeholder contains the index of its value: if a key comes twice, the parser dropped some placeholders.
  const original = (huge: number): unknown => taken[Math.round(huge / HUGE) - 1]?.value
  if (typeof document === 'number') return original(document)
  const holders: unknown[] = [document]
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    if (Array.isArray(holder)) {
      for (let index = 0; index < holder.length; index++) {
        const value: unknown = holder[index]
        if (typeof value === 'number') {
          if (value >= HUGE) holder[index] = original(value)
        } else if (typeof value === 'object' && value !== null) holders.push(value)
      }
    } else {
      const record = holder as Record<string, unknown>
      for (const key in record) {
        const value = record[key]
        if (typeof value === 'number') {
          if (value >= HUGE) record[key] = original(value)
        } else if (typeof value === 'object' && value !== null) holders.push(value)
      }
    }
  }
  return document
}

/**
 * The number of significant digits: leading and trailing zeros and the exponent do not count. It takes one pass,
 * because a number may have millions of digits.
 */
function significant(source: string): number {
  let digits = 0
  let first = 0
  let last = 0
  for (let at = 0; at < source.length; at++) {
    const code = source.charCodeAt(at)
    if (code === 0x65 || code === 0x45) break
    if (code < 0x30 || code > 0x39) continue
    digits++
    if (code === 0x30) continue
    if (first === 0) first = digits
    last = digits
  }
  return first === 0 ? 0 : last - first + 1
}
