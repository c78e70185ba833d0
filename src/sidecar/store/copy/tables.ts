import { hash } from 'node:crypto'

export type Value = string | number | null
export type Row = Readonly<Record<string, Value>>
/** The values of the columns of a table's key. */
export type Key = readonly Value[]

/** The columns that both engines have. Each engine computes its other columns from them. */
export interface Table {
  name: string
  /** The table that holds its rows, if `name` is a view with further rows. */
  rows?: string
  key: readonly string[]
  numbers: readonly string[]
  texts: readonly string[]
  /** Those of `numbers` that are times of the store's clock. */
  due?: readonly string[]
}

const words = (text: string): string[] => text.split(' ')

export const TABLES: readonly Table[] = [
  {
    name: 'facts',
    key: words('pos'),
    numbers: words('pos at seen_stream seen_webhook seen_poll checksum'),
    texts: words('id type session_id turn_id family seq body subject'),
  },
  {
    name: 'handlers',
    key: words('number'),
    numbers: words('number paused_at'),
    texts: words('name pause_reason'),
  },
  {
    name: 'lanes',
    key: words('id'),
    numbers: words('id handler pending due_at'),
    texts: words('key'),
    due: words('due_at'),
  },
  {
    name: 'deliveries',
    rows: 'delivery_rows',
    key: words('fact_pos handler'),
    numbers: words('fact_pos handler lane status attempts cut'),
    texts: words('log answer'),
  },
  { name: 'begun', key: words('fact_pos handler'), numbers: words('fact_pos handler at'), texts: [] },
  {
    name: 'calls',
    key: words('call_id'),
    numbers: words(
      'attempts uncertain deferred posts unsure created_at expires_at received_at started_at finished_at ended_at due_at',
    ),
    texts: words('call_id session_id turn_id name state action result_kind result_text outcome error'),
    due: words('due_at'),
  },
  {
    name: 'sessions',
    key: words('id'),
    numbers: words('updated_at at_rest revision baseline first_seen read_at deleted_at'),
    texts: words('id status raw'),
  },
  {
    name: 'turns',
    key: words('id'),
    numbers: words('created_at final settled final_fact ended_frame_at final_read_at'),
    texts: words('id session_id raw'),
    due: words('final_read_at'),
  },
  {
    name: 'actions',
    key: words('call_id'),
    numbers: words('created_at opened_at resolved_at'),
    texts: words('call_id session_id type raw'),
  },
  {
    name: 'hints',
    key: words('session_id'),
    numbers: words('generation due_at scope seen_stream seen_webhook seen_poll failures'),
    texts: words('session_id'),
    due: words('due_at'),
  },
  { name: 'sightings', key: words('subject channel'), numbers: words('at'), texts: words('subject channel') },
  { name: 'checkpoints', key: words('name'), numbers: [], texts: words('name value') },
  {
    name: 'subscriptions',
    key: words('id'),
    numbers: words('created_at retired_at'),
    texts: words('id url secret'),
  },
  { name: 'quarantine', key: words('id'), numbers: words('id at'), texts: words('source reason bytes') },
  {
    name: 'session_owners',
    key: words('session_id'),
    numbers: words('noted_at adopted_at'),
    texts: words('session_id owner from_seq'),
  },
  {
    name: 'held_frames',
    key: words('pos'),
    numbers: words('pos characters'),
    texts: words('session_id id fact'),
  },
]

/** The most that is read or written at once: about so many bytes, and so many rows. */
export const PAGE = { bytes: 4 * 1024 * 1024, rows: 5_000 }

/** Tables that number their rows. No number is given twice, also after its row was removed. */
export const NUMBERED = ['facts', 'handlers', 'lanes', 'quarantine', 'held_frames'] as const

export function columnsOf({ numbers, texts }: Table): string[] {
  return [...numbers, ...texts]
}

export function keyOf({ key }: Table, row: Row): Key {
  return key.map((column) => row[column] ?? null)
}

/** Moves due times from one store's clock to the other's. A time of 0 stays: it is due at once on any clock. */
export function moveClock({ due = [] }: Table, rows: readonly Row[], by: number): readonly Row[] {
  if (by === 0 || due.length === 0) return rows
  return rows.map((row) => {
    const moved: Record<string, Value> = { ...row }
    for (const column of due) {
      const at = row[column]
      if (typeof at === 'number' && at > 0) moved[column] = Math.max(0, at + by)
    }
    return moved
  })
}

const WORD = 2n ** 64n

/** The checksum of rows, the same in any order: the engines order texts differently. */
export class Checksum {
  #sum = 0n
  rows = 0

  add(table: Table, rows: readonly Row[]): void {
    const columns = columnsOf(table)
    for (const row of rows) {
      // SQLite cannot store half of a surrogate pair: both engines are compared in the form that it stores.
      const values = columns.map((column) => {
        const value = row[column] ?? null
        return typeof value === 'string' ? value.toWellFormed() : value
      })
      this.#sum = (this.#sum + hash('sha256', JSON.stringify(values), 'buffer').readBigUInt64BE()) % WORD
      this.rows++
    }
  }

  get text(): string {
    return this.#sum.toString(16).padStart(16, '0')
  }
}
