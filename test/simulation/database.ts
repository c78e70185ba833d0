import Database from 'better-sqlite3'
import { openDatabase, type Sqlite } from '../../src/store/sqlite/open.ts'

/** On small pages a full disk is felt by the next row or two; usual ones are faster. */
export const PAGES = [512, 4096, 4096, 4096]

/** Databases that a seed gave back, empty again, by the size of their pages. */
const idle = new Map<number, Sqlite[]>(PAGES.map((bytes) => [bytes, []]))
let schema: readonly string[] | null = null

/** An empty database in memory. To use one again saves compiling its statements, which is dearer than what a seed asks. */
export function newDatabase(pageSize: number): Sqlite {
  return idle.get(pageSize)?.pop() ?? makeDatabase(pageSize)
}

/** Takes a database back whose seed is over. */
export function giveBack(db: Sqlite): void {
  emptyDisk(db)
  for (const table of tablesOf(db)) db.prepare(`DELETE FROM ${table}`).run()
  // Free pages would let the next seed's full disk take more.
  db.pragma('incremental_vacuum')
  idle.get(Number(db.pragma('page_size', { simple: true })))?.push(db)
}

function makeDatabase(pageSize: number): Sqlite {
  schema ??= readSchema()
  const db = new Database(':memory:')
  db.pragma(`page_size = ${pageSize}`)
  db.pragma('auto_vacuum = INCREMENTAL')
  for (const statement of schema) db.exec(statement)
  return remembering(db)
}

function readSchema(): string[] {
  const { db } = openDatabase(':memory:')
  const statements = db
    .prepare<[], string>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all()
  db.close()
  return statements
}

function tablesOf(db: Sqlite): string[] {
  return db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
}

/** Every life prepares the same statements. A text must always be asked the same way, plucked or not. */
function remembering(db: Sqlite): Sqlite {
  const known = new Map<string, Database.Statement>()
  const prepare = db.prepare.bind(db) as (sql: string) => Database.Statement
  const remembered = (sql: string): Database.Statement => {
    let statement = known.get(sql)
    if (statement === undefined) known.set(sql, (statement = prepare(sql)))
    return statement
  }
  return Object.assign(db, { prepare: remembered })
}

const PLENTY = 1_000_000

/** No page more: what grows the database fails from now on. */
export function fillDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${String(db.pragma('page_count', { simple: true }))}`)
}

export function emptyDisk(db: Sqlite): void {
  db.pragma(`max_page_count = ${PLENTY}`)
}
