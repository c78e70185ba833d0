import Database from 'better-sqlite3'
import { openDatabase, type Sqlite } from '../../src/store/sqlite/open.ts'

let template: Buffer | null = null

/** A new database in memory, copied from one that was made once. */
export function newDatabase(): Sqlite {
  template ??= newTemplate()
  return new Database(template)
}

/** The migrated schema on small pages: a full disk is felt by the next row or two. */
function newTemplate(): Buffer {
  const { db: migrated } = openDatabase(':memory:')
  const statements = migrated
    .prepare<[], string>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all()
  migrated.close()
  const small = new Database(':memory:')
  small.pragma('page_size = 512')
  for (const statement of statements) small.exec(statement)
  const bytes = small.serialize()
  small.close()
  return bytes
}

const PLENTY = 1_000_000

/** No page more: what grows the database fails from now on. */
export function fillDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${String(db.pragma('page_count', { simple: true }))}`)
}

export function emptyDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${PLENTY}`)
}
