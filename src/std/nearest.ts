/** The known word nearest to a mistyped one, or null when none is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  const lower = word.toLowerCase().replaceAll('-', '_')
  let best: string | null = null
  // A third of the letters may be wrong; with more, a guess misleads more often than it helps.
  let least = Math.max(1, Math.floor(lower.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(lower, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Words longer than any key are not compared. */
const LONGEST = 64

/** Letters inserted, dropped, changed, or swapped with their neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  if (a.length > LONGEST || b.length > LONGEST) return Infinity
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(
        at(last, column) + 1,
        at(next, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, at(before, column - 2) + 1)
      }
      next.push(cost)
    }
    before = last
    last = next
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}

/** ` Did you mean "…"?`, or an empty text. */
export function guess(word: string, known: readonly string[]): string {
  const best = nearest(word, known)
  return best === null ? '' : ` Did you mean "${best}"?`
}
