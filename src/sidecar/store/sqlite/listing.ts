import type { Listed } from '../../../core/listed.ts'

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
