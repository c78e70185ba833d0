/** The row of the table `owner`: the part that shows which WAL belongs to which file. */
export interface OwnerMark {
  owner: string
  previous: string
  epoch: number
  commits: number
}

/** Of a database that has no owner: it was never opened by a version that writes one. */
export const NO_OWNER: OwnerMark = { owner: '', previous: '', epoch: 0, commits: 0 }

/** The first version of the schema in which a database has an owner. */
export const OWNER_SCHEMA = 8

/** First byte of a page that is a leaf of a table's tree. */
const LEAF = 0x0d
const COLUMNS = 5
const OWNER = /^(?:[0-9a-f]{32})?$/

/**
 * Reads the row of the table `owner` from a page of SQLite's file format (https://sqlite.org/fileformat2.html); null where
 * the page holds something else. An agent's text can be on any page, so the whole shape of the row has to fit.
 */
export function readOwnerPage(page: Buffer): OwnerMark | null {
  try {
    if (page[0] !== LEAF || page.readUInt16BE(3) !== 1) return null
    const cell = new Cursor(page, page.readUInt16BE(8))
    cell.varint() // Bytes of the record.
    if (cell.varint() !== 1) return null // The row's id.
    const header = cell.at
    const end = header + cell.varint()
    const types = Array.from({ length: COLUMNS }, () => cell.varint())
    // The column `one` is the id of the row, so the record itself has nothing for it. Two texts and two whole numbers
    // follow.
    if (cell.at !== end || types[0] !== 0) return null
    const [owner, previous] = [cell.text(types[1]), cell.text(types[2])]
    const [epoch, commits] = [cell.integer(types[3]), cell.integer(types[4])]
    if (owner === null || previous === null || epoch === null || commits === null) return null
    return OWNER.test(owner) && OWNER.test(previous) ? { owner, previous, epoch, commits } : null
  } catch (error) {
    // The page ends before the row: it is not such a row.
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Bytes of a whole number by its type in a record. */
const INTEGER_BYTES: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 3, 4: 4, 5: 6 }

class Cursor {
  at: number
  readonly #page: Buffer

  constructor(page: Buffer, at: number) {
    this.#page = page
    this.at = at
  }

  /** Seven bits a byte, the high bit set on all but the last. Larger numbers than ours need are not read. */
  varint(): number {
    let value = 0
    for (let read = 0; read < 4; read++) {
      const byte = this.#page.readUInt8(this.at++)
      value = value * 128 + (byte & 0x7f)
      if (byte < 0x80) return value
    }
    throw new RangeError('a number that is too large')
  }

  text(type: number | undefined): string | null {
    if (type === undefined || type < 13 || type % 2 === 0) return null
    const from = this.at
    this.at += (type - 13) / 2
    if (this.at > this.#page.length) throw new RangeError('a text beyond its page')
    return this.#page.toString('latin1', from, this.at)
  }

  integer(type: number | undefined): number | null {
    if (type === 8 || type === 9) return type - 8
    const bytes = INTEGER_BYTES[type ?? 0]
    if (bytes === undefined) return null
    const value = this.#page.readIntBE(this.at, bytes)
    this.at += bytes
    return value
  }
}
