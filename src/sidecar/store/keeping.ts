import type { Clock } from '../../std/ports.ts'

/** A count that took 100 ms is used for 2 s: with a large backlog, counting must not delay deliveries. */
const KEPT_FOR = 20
/** A count that took less than this is used once, milliseconds. */
const SHORT = 20

/** Counts that are asked for at once are one, and one that takes long is used for a while. */
export function keepCounts<T>(clock: Clock, count: () => T | Promise<T>): () => Promise<T> {
  let last: { counts: T; until: number } | null = null
  let counting: Promise<T> | null = null
  const countAnew = async (): Promise<T> => {
    const began = clock.steady()
    try {
      const counts = await count()
      const ended = clock.steady()
      last = ended - began < SHORT ? null : { counts, until: ended + (ended - began) * KEPT_FOR }
      return counts
    } finally {
      counting = null
    }
  }
  return async () => {
    if (last !== null && clock.steady() < last.until) return last.counts
    return await (counting ??= countAnew())
  }
}
