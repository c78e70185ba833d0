/** Compares two seqs by value whatever their length. What is no number is never before anything. */
export function isBefore(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length
}
