/** A seq as the interface has it; what else stands in an `id:` line is kept, and cannot be reckoned with. */
export function isWhole(seq: string): boolean {
  return /^\d{1,40}$/.test(seq)
}

/** Whether a text can stand in the header that asks for what follows it: a cursor that cannot be sent never opens a stream again. */
export function isCursor(text: string): boolean {
  return /^[\u0021-\u007e]{1,256}$/.test(text)
}

/**
 * True when seq `a` comes before `b`: by value, whatever their length, for digits without leading zeros, which the service
 * gives. Any other texts are ordered as well, by their length and then their characters, but not in time.
 */
export function isBefore(a: string, b: string): boolean {
  return a.length < b.length || (a.length === b.length && a < b)
}
