/** The entry of `known` that a mistyped word most likely stands for; null when none is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  let best: string | null = null
  // A third of the letters may be wrong; with more, a guess misleads more often than it helps.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const edits = distance(word.slice(0, LONGEST).toLowerCase(), candidate.toLowerCase())
    if (edits < least) [best, least] = [candidate, edits]
  }
  return best
}

/** Letters compared: no name of ours is longer. */
const LONGEST = 64

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** ` Did you mean "…"?`, or nothing. */
export function guess(word: string, known: readonly string[]): string {
  const best = nearest(word, known)
  return best === null ? '' : ` Did you mean "${best}"?`
}
