import type { Clock } from '../../std/ports.ts'

/** A count that took 100 ms is used for 2 s: with a large backlog, counting must not delay deliveries. */
const KEPT_FOR = 20

/**
 * Counts that are asked for at once are one. A count that takes long, or fails after long, is used for a while. `short`: a
 * count that took less is used once; `longest`: the longest while, where a count may also wait for others; milliseconds.
 */
export function keepCounts<T>(
  clock: Clock,
  count: () => T | Promise<T>,
  { short, longest = Infinity }: { short: number; longest?: number },
): () => Promise<T> {
  /** `until`: steady milliseconds. */
  let last: { counts: Promise<T>; until: number } | null = null
  const countAnew = (): Promise<T> => {
    const began = clock.steady()
    const counts = Promise.resolve().then(count)
    const counting = { counts, until: Infinity }
    last = counting
    const end = (): void => {
      const now = clock.steady()
      const took = now - began
      counting.until = took < short ? now : now + Math.min(took * KEPT_FOR, longest)
    }
    counts.then(end, end)
    return counts
  }
  return () => (last !== null && clock.steady() < last.until ? last.counts : countAnew())
}
