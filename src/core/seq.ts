/** A seq as the interface has it; what else stands in an `id:` line is kept, and cannot be reckoned with. */
export function isWhole(seq: string): boolean {
  return /^\d{1,40}$/.test(seq)
}

/** Compares two seqs by value whatever their length. What is no number is never before anything. */
export function isBefore(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length
}
