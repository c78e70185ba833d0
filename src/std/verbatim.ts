/** Node has it; the compiler's library does not know it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/**
 * The placeholder that `JSON.stringify` writes for a verbatim value: the string A, in a form that it never writes
 * itself. In a string of a document a quote or a backslash is escaped, so the placeholder occurs nowhere else.
 */
const MARK = '"\\u0041"'
const MARKED = rawJSON(MARK)

/** The texts that `writeJson` inserts, in order, while it runs. */
let texts: string[] | null = null

/** A JSON value that is only passed on: its unchanged text. `writeJson` writes it; its content cannot be read. */
export class Verbatim {
  readonly #text: string
  readonly #parse: (text: string) => unknown

  /** `parse` is used when `JSON.stringify` gets the value without `writeJson`: it writes the same value, but slowly. */
  constructor(text: string, parse: (text: string) => unknown) {
    this.#text = text
    this.#parse = parse
  }

  /** @throws {SyntaxError} when the text is not JSON. */
  check(): void {
    JSON.parse(this.#text)
  }

  toJSON(): unknown {
    if (texts === null) return this.#parse(this.#text)
    texts.push(this.#text)
    return MARKED
  }
}

/** `JSON.stringify` for values that `parseJson` gave: it inserts the text of each verbatim value without parsing it. */
export function writeJson(value: unknown): string {
  const outer = texts
  const own: string[] = []
  texts = own
  let written: string
  try {
    written = JSON.stringify(value)
  } finally {
    texts = outer
  }
  if (own.length === 0) return written
  const [first = '', ...rest] = written.split(MARK)
  return first + rest.map((after, index) => `${own[index]}${after}`).join('')
}
