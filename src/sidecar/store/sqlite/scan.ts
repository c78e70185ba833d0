import type { Clock } from '../../../std/ports.ts'
import type { Listed } from '../../../core/listed.ts'
import type { Listing } from './listing.ts'

/** Places of the log that one question looks through: no index has all that is asked for, and others wait meanwhile. */
const STRETCH = 16_384

/** A part of the log, both ends included, and from which of them it is read. */
export interface Part {
  low: number
  high: number
  order: 'asc' | 'desc'
}

/** Looks through the log until the page is full, a stretch at a time, and lets others go first in between. */
export async function scan<T>(
  { low, high, order }: Part,
  listing: Listing<T>,
  clock: Clock,
  look: (first: number, last: number) => Iterable<T>,
): Promise<Listed<T>> {
  while (low <= high) {
    const first = order === 'asc' ? low : Math.max(low, high - STRETCH + 1)
    const last = order === 'asc' ? Math.min(high, low + STRETCH - 1) : high
    for (const row of look(first, last)) if (!listing.add(row)) return listing.listed()
    if (order === 'asc') low = last + 1
    else high = first - 1
    if (low <= high) await new Promise<void>((resolve) => clock.soon(resolve))
  }
  return listing.listed()
}
