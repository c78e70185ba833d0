import type { Clock } from '../../core/ports.ts'

/** Places of the log that one question looks through: no index has all that is asked for, and others wait meanwhile. */
const STRETCH = 16_384

/** A part of the log, both ends included, and from which of them it is read. */
export interface Part {
  low: number
  high: number
  order: 'asc' | 'desc'
}

/** What a stretch has; `reached`: the place up to which it was looked through, null for all of it. */
interface Found<T> {
  found: T[]
  reached: number | null
}

/** Looks through the log for `limit` things, a stretch at a time, and lets others go first in between. */
export async function scan<T>(
  { low, high, order }: Part,
  limit: number,
  clock: Clock,
  look: (first: number, last: number, limit: number) => Found<T>,
): Promise<T[]> {
  const all: T[] = []
  while (all.length < limit && low <= high) {
    const first = order === 'asc' ? low : Math.max(low, high - STRETCH + 1)
    const last = order === 'asc' ? Math.min(high, low + STRETCH - 1) : high
    const { found, reached } = look(first, last, limit - all.length)
    all.push(...found)
    if (order === 'asc') low = (reached ?? last) + 1
    else high = (reached ?? first) - 1
    if (all.length < limit && low <= high) await new Promise<void>((resolve) => clock.soon(resolve))
  }
  return all
}
