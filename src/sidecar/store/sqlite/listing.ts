import type { Listed } from '../../../core/listed.ts'
import type { Clock } from '../../../std/ports.ts'

/** Characters of one answer to a person, about: what it makes us hold, and for how long it holds up others. */
const CHARACTERS = 4 * 1024 * 1024

/** Behind a cursor that cannot be placed. */
export const NOTHING: Listed<never> = { rows: [], more: false }

/** A page in the making: it is full with so many rows, or once they have so many characters. */
export interface Listing<T> {
  /** @returns false when it is full, and the row did not go in. */
  add(row: T): boolean
  /** What was added; `more`: a row did not go in. */
  listed(): Listed<T>
}

export function createListing<T>(limit: number, sizeOf: (row: T) => number): Listing<T> {
  const rows: T[] = []
  let room = CHARACTERS
  let more = false
  return {
    add(row) {
      if (rows.length >= limit || room <= 0) more = true
      else {
        rows.push(row)
        room -= sizeOf(row)
      }
      return !more
    },
    listed: () => ({ rows, more }),
  }
}

/** The rows of one question, as many as fit. */
export function list<T>(rows: Iterable<T>, limit: number, sizeOf: (row: T) => number): Listed<T> {
  const listing = createListing(limit, sizeOf)
  for (const row of rows) if (!listing.add(row)) break
  return listing.listed()
}

export function mapListed<T, U>({ rows, more }: Listed<T>, map: (row: T) => U[]): Listed<U> {
  return { rows: rows.flatMap(map), more }
}

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

/** A condition, and the values of its question marks. */
export type Condition = readonly [string, ...unknown[]]

/** The conditions that all hold, as text and values. Those with a value that is undefined are left out. */
export function where(conditions: readonly Condition[]): [text: string, values: unknown[]] {
  const used = conditions.filter(([, ...values]) => !values.includes(undefined))
  const text = used.length === 0 ? '' : `WHERE ${used.map(([condition]) => condition).join(' AND ')}`
  return [text, used.flatMap(([, ...values]) => values)]
}

/** Positions of the facts of one session (`?`) from `?` to `?`, each value twice: those noted, and the newest, which are not noted yet (log.ts). */
export const POSITIONS_OF_SESSION = `SELECT pos FROM session_facts WHERE session_id = ? AND pos BETWEEN ? AND ?
  UNION ALL SELECT pos FROM facts WHERE session_id = ? AND pos
    BETWEEN max(?, 1 + ifnull((SELECT CAST(value AS INTEGER) FROM checkpoints WHERE name = 'session_facts'), 0)) AND ?`
