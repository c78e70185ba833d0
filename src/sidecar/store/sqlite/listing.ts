import type { Listed } from '../../../core/listed.ts'
import type { Clock } from '../../../std/ports.ts'

/**
 * About how many characters one answer to a person has at most: this limits its memory and the time for which other
 * work waits.
 */
const CHARACTERS = 4 * 1024 * 1024

/** The page behind a row that is not known. */
export const NOTHING: Listed<never> = { rows: [], more: false }

/** A page that is being filled: it is full at a number of rows, or at a number of characters. */
export interface Listing<T> {
  /** @returns false when the page is full, and the row was not added. */
  add(row: T): boolean
  /** The rows that were added; `more`: a row was not added. */
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

/** The rows of one query, as many as fit. */
export function list<T>(rows: Iterable<T>, limit: number, sizeOf: (row: T) => number): Listed<T> {
  const listing = createListing(limit, sizeOf)
  for (const row of rows) if (!listing.add(row)) break
  return listing.listed()
}

export function mapListed<T, U>({ rows, more }: Listed<T>, map: (row: T) => U[]): Listed<U> {
  return { rows: rows.flatMap(map), more }
}

/**
 * How many positions of the log one query reads. No index has everything that can be searched for, and other work waits
 * meanwhile.
 */
const STRETCH = 16_384

/** A part of the log, both ends included, and the direction in which it is read. */
export interface Part {
  low: number
  high: number
  order: 'asc' | 'desc'
}

/** Searches the log until the page is full, one part at a time, and lets other work run in between. */
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
export type Condition<V = unknown> = readonly [string, ...(V | undefined)[]]

/** The conditions that all hold, as text and values. Those with a value that is undefined are left out. */
export function where<V>(conditions: readonly Condition<V>[]): [text: string, values: V[]] {
  const used = conditions.filter(([, ...values]) => !values.includes(undefined))
  const text = used.length === 0 ? '' : `WHERE ${used.map(([condition]) => condition).join(' AND ')}`
  return [text, used.flatMap(([, ...values]) => values.filter((value) => value !== undefined))]
}

/**
 * The positions of the facts of one session, from one position to another. The parameters are session, first and last,
 * and once more the same. The first part finds the positions in `session_facts`, the second those of the newest facts,
 * which are not in it yet (log.ts).
 */
export const POSITIONS_OF_SESSION = `SELECT pos FROM session_facts WHERE session_id = ? AND pos BETWEEN ? AND ?
  UNION ALL SELECT pos FROM facts WHERE session_id = ? AND pos
    BETWEEN max(?, 1 + ifnull((SELECT CAST(value AS INTEGER) FROM checkpoints WHERE name = 'session_facts'), 0)) AND ?`
