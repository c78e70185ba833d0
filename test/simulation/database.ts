import Database from 'better-sqlite3'
import { openDatabase, type Sqlite } from '../../src/store/sqlite/open.ts'

let template: Buffer | null = null

/** A new database in memory, copied from one that was migrated once. */
export function newDatabase(): Sqlite {
  if (template === null) {
    const { db } = openDatabase(':memory:')
    template = db.serialize()
    db.close()
  }
  return new Database(template)
}

const PLENTY = 1_000_000

/** No page more: what grows the database fails from now on. */
export function fillDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${String(db.pragma('page_count', { simple: true }))}`)
}

export function emptyDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${PLENTY}`)
}
