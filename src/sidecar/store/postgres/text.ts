/**
 * A type of the service may hold a NUL or half a surrogate pair: JSON can, and a text of PostgreSQL cannot. Such characters are
 * written as this mark and four hex digits, and so is the mark itself.
 */
const MARK = '\uE000'
// oxlint-disable-next-line no-control-regex
const MARKED = /[\0\uE000]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g
const WRITTEN = /\uE000([0-9a-f]{4})/g

/** The text in a form that PostgreSQL can store. */
function storable(text: string): string {
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(MARK)) return text
  return text.replace(MARKED, (one) => MARK + one.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** The text as it was before `storable`. */
export function original(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(WRITTEN, (_all, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}

type Member = string | number | null

/** A value as the driver sends it. */
export function parameterOf(value: Member | boolean | readonly Member[]): string | number | Buffer | null {
  if (typeof value === 'string') return storable(value)
  if (typeof value === 'number' || value === null) return value
  if (typeof value === 'boolean') return String(value)
  return value.some((one) => typeof one === 'string') ? textArray(value) : numberArray(value)
}

/** A column of an `unnest`: where it is null in each row, the server has nothing to read, and adds the nulls itself. */
export function sparse(members: readonly Member[]): readonly Member[] | null {
  return members.some((one) => one !== null) ? members : null
}

function numberArray(members: readonly Member[]): string {
  return `{${members.map((one) => one ?? 'NULL').join()}}`
}

/** The type of the members, as the server numbers it. */
const TEXT = 25
/** Bytes of: dimensions, nulls, type, length, lower bound. */
const HEADER = 20

/** In the binary format, because in a text each quote of each body would be escaped and parsed. */
function textArray(members: readonly Member[]): Buffer {
  const texts = members.map((one) => (one === null ? null : storable(String(one))))
  let size = HEADER
  for (const text of texts) size += 4 + (text === null ? 0 : Buffer.byteLength(text))
  const buffer = Buffer.allocUnsafe(size)
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(texts.includes(null) ? 1 : 0, 4)
  buffer.writeInt32BE(TEXT, 8)
  buffer.writeInt32BE(texts.length, 12)
  buffer.writeInt32BE(1, 16)
  let place = HEADER
  for (const text of texts) {
    const length = text === null ? -1 : buffer.write(text, place + 4)
    buffer.writeInt32BE(length, place)
    place += 4 + Math.max(0, length)
  }
  return buffer
}
