import { OperatorError } from '../../../std/errors.ts'
import { Checksum, keyOf, moveClock, TABLES, type Key, type Row, type Table } from './tables.ts'

/** For each table that numbers its rows, the last number that it gave. */
export type Numbers = Readonly<Record<string, number>>

/** How far a copy has come. It is stored in the same transaction as the rows. */
export interface Place {
  /** Index of the table that is copied now. */
  table: number
  after: Key | null
  rows: number
}

/** The source of a copy that is not complete. */
export interface Origin {
  /** The address of the source. */
  source: string
  /** Changes whenever a sidecar works with the source. */
  mark: string
  /** How far the clock of the target is ahead of that of the source, milliseconds. */
  clock: number
}

interface Side {
  /** Its address, for people. */
  readonly place: string
  /** The time of its clock, by which work is due. */
  readonly now: number
  /** Rows after a key, in the order of the keys: at most a few megabytes. */
  page(table: Table, after: Key | null): Promise<Row[]>
  close(): Promise<void>
}

export interface Source extends Side {
  readonly mark: string
  count(table: Table): Promise<number>
  numbers(): Promise<Numbers>
  /** @throws {OperatorError} when a sidecar has worked with the source since it was opened. */
  assertAtRest(): Promise<void>
}

export interface Target extends Side {
  /**
   * Makes an empty store that no sidecar can use yet, or continues a copy that is not complete.
   * @throws {OperatorError} when there is something else.
   */
  begin(origin: Origin): Promise<{ origin: Origin; place: Place }>
  /** Writes rows and the new place in one transaction. */
  write(table: Table, rows: readonly Row[], step: { from: Place; to: Place }): Promise<void>
  /** Lets sidecars use the store. */
  finish(numbers: Numbers): Promise<void>
}

export interface Copied {
  from: string
  to: string
  /** Whether an earlier copy was continued. */
  continued: boolean
  tables: { table: string; rows: number; checksum: string }[]
}

export type Progress = (part: { done: number; total: number }) => void

/** Two clocks that differ by less than this count as equal, milliseconds. */
const SAME_TIME = 1000

/**
 * Copies a store into another engine, or continues a copy that was interrupted. At the end both stores are read and compared.
 * Only then can a sidecar use the copy.
 * @throws {OperatorError} when one of the two cannot be used, or they differ at the end.
 */
export async function copyStore(source: Source, target: Target, onProgress: Progress): Promise<Copied> {
  const apart = target.now - source.now
  const clock = Math.abs(apart) < SAME_TIME ? 0 : Math.round(apart)
  const begun = await target.begin({ source: source.place, mark: source.mark, clock })
  let { place } = begun
  const continued = place.table > 0 || place.after !== null
  let total = 0
  for (const table of TABLES) total += await source.count(table)
  for (let table = TABLES[place.table]; table !== undefined; table = TABLES[place.table]) {
    const rows = await source.page(table, place.after)
    const last = rows.at(-1)
    const to: Place =
      last === undefined
        ? { table: place.table + 1, after: null, rows: place.rows }
        : { table: place.table, after: keyOf(table, last), rows: place.rows + rows.length }
    await target.write(table, moveClock(table, rows, begun.origin.clock), { from: place, to })
    place = to
    onProgress({ done: place.rows, total: total * 2 })
  }
  const tables = await compare(source, target, {
    clock: begun.origin.clock,
    onRows: (done) => onProgress({ done: total + done, total: total * 2 }),
  })
  await source.assertAtRest()
  await target.finish(await source.numbers())
  return { from: source.place, to: target.place, continued, tables }
}

/** Reads both stores to the end. */
async function compare(
  source: Source,
  target: Target,
  { clock, onRows }: { clock: number; onRows: (done: number) => void },
): Promise<Copied['tables']> {
  const tables: Copied['tables'] = []
  let done = 0
  for (const table of TABLES) {
    const read = await checksum(source, table, (rows) => {
      onRows((done += rows.length))
      return moveClock(table, rows, clock)
    })
    const written = await checksum(target, table, (rows) => rows)
    if (read.rows !== written.rows || read.text !== written.text)
      throw new OperatorError(
        `store: the copy differs in ${table.name}: ${read.rows} rows in ${source.place} (checksum ${read.text}), ` +
          `${written.rows} in ${target.place} (${written.text})`,
        1,
        'remove the copy, and copy again; no sidecar can use it',
      )
    tables.push({ table: table.name, rows: read.rows, checksum: read.text })
  }
  return tables
}

async function checksum(
  side: Side,
  table: Table,
  change: (rows: readonly Row[]) => readonly Row[],
): Promise<Checksum> {
  const sum = new Checksum()
  for (let after: Key | null = null; ;) {
    const rows = await side.page(table, after)
    const last = rows.at(-1)
    if (last === undefined) return sum
    sum.add(table, change(rows))
    after = keyOf(table, last)
  }
}

export const START: Place = { table: 0, after: null, rows: 0 }

/** Origin and place as a target stores them, in JSON. */
export interface Unfinished {
  origin: string
  place: string
}

/**
 * @returns where the copy continues; null: the source has changed since, so it starts from the beginning.
 * @throws {OperatorError} when it is a copy of something else.
 */
export function resume(
  { origin, place }: Unfinished,
  given: Origin,
): { origin: Origin; place: Place } | null {
  const known = JSON.parse(origin) as Origin
  if (known.source !== given.source)
    throw new OperatorError(
      `store: the target holds a copy of ${known.source} that is not complete`,
      1,
      'finish it by the same command, or remove the target',
    )
  return known.mark === given.mark ? { origin: known, place: JSON.parse(place) as Place } : null
}
