import { OperatorError } from '../../../std/errors.ts'
import { Checksum, keyOf, moveClock, TABLES, type Key, type Row, type Table } from './tables.ts'

/** The last numbers given, by table. No row has an epoch: what is claimed is claimed in memory. */
export type Numbers = Readonly<Record<string, number>>

/** How far a copy is. It is stored with the rows that it counts. */
export interface Place {
  /** Index of the table that is copied now. */
  table: number
  after: Key | null
  rows: number
}

/** What a copy that is not complete is of. */
export interface Origin {
  /** The address of the source. */
  source: string
  /** Changes whenever a sidecar works with the source. */
  mark: string
  /** Milliseconds from the clock of the source to that of the target. */
  clock: number
}

interface Side {
  /** Its address, for people. */
  readonly place: string
  /** Its clock: what is due then is due now. */
  readonly now: number
  /** Rows after a key, in the order of the keys: a few megabytes of them. */
  page(table: Table, after: Key | null): Promise<Row[]>
  close(): Promise<void>
}

export interface Source extends Side {
  readonly mark: string
  count(table: Table): Promise<number>
  numbers(): Promise<Numbers>
  /** @throws {OperatorError} when a sidecar worked with it since it was opened. */
  assertAtRest(): Promise<void>
}

export interface Target extends Side {
  /**
   * Makes an empty store that nothing can use yet, or goes on with the one that is there.
   * @throws {OperatorError} when the place holds something else.
   */
  begin(origin: Origin): Promise<{ origin: Origin; place: Place }>
  /** Writes rows and the place that is reached with them, both or neither. */
  write(table: Table, rows: readonly Row[], step: { from: Place; to: Place }): Promise<void>
  /** Makes the store usable. */
  finish(numbers: Numbers): Promise<void>
}

export interface Copied {
  from: string
  to: string
  /** Whether an earlier copy, which was cut, was continued. */
  continued: boolean
  tables: { table: string; rows: number; checksum: string }[]
}

export type Progress = (part: { done: number; total: number }) => void

/** Clocks of two machines that differ by less are not distinguished, milliseconds. */
const SAME_TIME = 1000

/**
 * Copies a store into another engine. A copy that is cut is continued; what is there at the end is read again and compared, and
 * only then can a sidecar use it.
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

/** Reads both to the end. */
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
        'remove the copy, and copy again; nothing was made usable',
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

/** As a target stores it, in JSON. */
export interface Unfinished {
  origin: string
  place: string
}

/**
 * @returns where a copy that was cut goes on; null: the source has changed since, so it starts over.
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
