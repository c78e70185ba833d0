/** A seq as in the interface. Another `id:` value is stored, but has no numeric order. */
export function isWhole(seq: string): boolean {
  return /^\d{1,40}$/.test(seq)
}

/** Whether a text can stand in the header that asks for what follows it: a cursor that cannot be sent never opens a stream again. */
export function isCursor(text: string): boolean {
  return /^[\u0021-\u007e]{1,256}$/.test(text)
}

/**
 * True when seq `a` comes before `b`: by value, whatever their length, for digits without leading zeros, which the
 * service gives. Other texts are ordered by length and then by characters, which is no order in time.
 */
export function isBefore(a: string, b: string): boolean {
  return a.length < b.length || (a.length === b.length && a < b)
}
