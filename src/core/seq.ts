/** A seq as the interface defines it. Another `id:` value is stored, but has no numeric order. */
export function isWhole(seq: string): boolean {
  return /^\d{1,40}$/.test(seq)
}

/**
 * Whether a text can be sent in the header `Last-Event-ID`. No stream could continue after a cursor that cannot be
 * sent.
 */
export function isCursor(text: string): boolean {
  return /^[\u0021-\u007e]{1,256}$/.test(text)
}

/**
 * True when seq `a` comes before `b`: `9` comes before `10`. Digits without leading zeros, as the service sends them,
 * are compared by value. Other texts are ordered by length and then by characters, which says nothing about time.
 */
export function isBefore(a: string, b: string): boolean {
  return a.length < b.length || (a.length === b.length && a < b)
}
