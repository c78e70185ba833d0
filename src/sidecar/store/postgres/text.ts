/**
 * A type of the service may hold a NUL or half a surrogate pair: JSON can, and a text of PostgreSQL cannot. Such characters are
 * written as this mark and four hex digits, and so is the mark itself.
 */
const MARK = '\uE000'
// oxlint-disable-next-line no-control-regex
const MARKED = /[\0\uE000]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g
const WRITTEN = /\uE000([0-9a-f]{4})/g

/** As PostgreSQL can store it. */
export function storable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  if (text.isWellFormed() && !/[\0\uE000]/.test(text)) return text
  return text.replace(MARKED, (one) => MARK + one.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** As it was before `storable`. */
export function original(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(WRITTEN, (_all, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}
