import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join, resolve as absolute } from 'node:path'
import Database from 'better-sqlite3'
import { OperatorError } from '../../../std/errors.ts'
import { createFolder, PRIVATE } from '../../../std/folder.ts'
import { STEADY } from '../sqlite/committer.ts'
import { copyDatabase, isThere } from '../sqlite/copy.ts'
import { glanceAtStore } from '../sqlite/inspect.ts'
import { createPrivately, lock } from '../sqlite/lock.ts'
import type { Sqlite } from '../sqlite/open.ts'
import { OWNER_SCHEMA } from '../sqlite/owner-page.ts'
import { explainOpening } from '../sqlite/refusal.ts'
import { APPLICATION_ID, COPYING_ID, knownMigrations, migrate, versionOf } from '../sqlite/schema.ts'
import { assertOwnLog } from '../sqlite/wal.ts'
import { resume, START, type Numbers, type Place, type Source, type Target, type Unfinished } from './copy.ts'
import { columnsOf, NUMBERED, PAGE, type Key, type Row, type Table, type Value } from './tables.ts'

/** Checkpoints that only SQLite has: the time of the last commit, and the progress of its own tables. */
const OWN = `('${STEADY}', 'session_facts', 'delivery_rows')`

/**
 * Opens a store to copy it. A file of an earlier version does not change: a copy of it is migrated to the newest schema.
 * @throws {OperatorError} when a sidecar uses it, or it cannot be read.
 */
export async function openSource(path: string, now: number): Promise<Source> {
  if (!existsSync(path))
    throw new OperatorError(`store: ${absolute(path)} does not exist`, 1, 'correct --from')
  const file = realpathSync(path)
  const unlock = lock(file)
  let temporary: string | null = null
  const leave = (): void => {
    if (temporary !== null) rmSync(temporary, { recursive: true, force: true })
    unlock()
  }
  try {
    const [problem] = glanceAtStore(file)
    if (problem !== undefined)
      throw new OperatorError(`store: ${file} is damaged: ${problem}`, 1, 'restore a backup (store restore)')
    let db = new Database(file, { readonly: true })
    const version = versionOf(db)
    if (version < OWNER_SCHEMA) {
      db.close()
      throw new OperatorError(
        `store: ${file} is of a version before 0.1 (schema ${version})`,
        1,
        'start a sidecar on it once, which migrates it',
      )
    }
    const mark = markOf(db)
    if (version < knownMigrations().length) {
      db.close()
      temporary = mkdtempSync(`${file}.partial-`)
      const newest = join(temporary, 'copy.db')
      await copyDatabase(file, newest, () => undefined)
      db = new Database(newest)
      migrate(db)
    }
    db.exec('BEGIN')
    return sourceOf(db, { place: `sqlite:${file}`, mark, now, leave })
  } catch (error) {
    leave()
    throw error
  }
}

function markOf(db: Sqlite): string {
  const row = db.prepare<[], { owner: string; commits: number }>('SELECT owner, commits FROM owner').get()
  return row === undefined ? 'new' : `${row.owner} ${row.commits}`
}

function sourceOf(
  db: Sqlite,
  given: { place: string; mark: string; now: number; leave: () => void },
): Source {
  const number = (sql: string): number => db.prepare<[], number | null>(sql).pluck().get() ?? 0
  const steady = number(`SELECT CAST(value AS INTEGER) FROM checkpoints WHERE name = '${STEADY}'`)
  return {
    place: given.place,
    mark: given.mark,
    // If the clock was set back since the last commit, due times count by the time of that commit.
    now: Math.max(given.now, steady),
    page: (table, after) => Promise.resolve(pageOf(db, table, after)),
    count: (table) => Promise.resolve(number(`SELECT count(*) FROM ${table.name}`)),
    numbers() {
      const tables = NUMBERED.map((name): [string, number] => [name, lastOf(db, name)])
      return Promise.resolve(Object.fromEntries(tables))
    },
    // The lock that `openSource` holds keeps every sidecar out.
    assertAtRest: () => Promise.resolve(),
    close() {
      db.close()
      given.leave()
      return Promise.resolve()
    },
  }
}

/** The last number that was given. Rows of `handlers` are never removed, so that is their highest number. */
function lastOf(db: Sqlite, table: (typeof NUMBERED)[number]): number {
  const sql =
    table === 'handlers'
      ? 'SELECT max(number) FROM handlers'
      : 'SELECT seq FROM sqlite_sequence WHERE name = ?'
  const get = db.prepare<unknown[], number | null>(sql).pluck()
  return (table === 'handlers' ? get.get() : get.get(table)) ?? 0
}

/**
 * The relations that together hold the rows of a table. A delivery of one of the newest facts has no row before its
 * first outcome; it is in the view.
 */
function relationsOf({ name, rows = name }: Table): string[] {
  return name === 'deliveries' ? [rows, 'fresh_deliveries'] : [rows]
}

const FRESH: Readonly<Record<string, string>> = {
  status: '0',
  attempts: '0',
  cut: '0',
  log: "''",
  answer: 'NULL',
}

function pageOf(db: Sqlite, table: Table, after: Key | null): Row[] {
  const key = table.key.join(', ')
  const columns = columnsOf(table)
  const conditions = [
    ...(after === null ? [] : [`(${key}) > (${after.map(() => '?').join(', ')})`]),
    ...(table.name === 'checkpoints' ? [`name NOT IN ${OWN}`] : []),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const parts = relationsOf(table).map((relation) => {
    const given = columns.map((column) =>
      relation === 'fresh_deliveries' && column in FRESH ? `${FRESH[column]} AS ${column}` : column,
    )
    // PostgreSQL derives the shard from the session. The lane of an unordered handler holds one fact and has the id of
    // that fact as its key.
    if (table.name === 'begun')
      given.push("coalesce((SELECT f.session_id FROM facts f WHERE f.pos = fact_pos), '') AS session_id")
    if (table.name === 'lanes')
      given.push('coalesce((SELECT f.session_id FROM facts f WHERE f.id = lanes.key), key) AS session_id')
    return `SELECT * FROM (SELECT ${given.join(', ')} FROM ${relation} ${where} ORDER BY ${key} LIMIT ${PAGE.rows})`
  })
  const rows = db.prepare<unknown[], Row>(`${parts.join(' UNION ALL ')} ORDER BY ${key} LIMIT ${PAGE.rows}`)
  const page: Row[] = []
  let bytes = 0
  for (const row of rows.iterate(...parts.flatMap(() => after ?? []))) {
    page.push(row)
    for (const column of table.texts) bytes += String(row[column] ?? '').length
    if (bytes >= PAGE.bytes) break
  }
  return page
}

/**
 * Makes a store in a new file, or continues a copy that is not complete. Until it is complete, the file is marked with
 * COPYING_ID, and no sidecar opens it.
 * @throws {OperatorError} when the file has something else.
 */
export function openTarget(path: string, now: number): Target {
  createFolder(dirname(absolute(path)), PRIVATE)
  const file = existsSync(path) ? realpathSync(path) : absolute(path)
  const unlock = lock(file)
  try {
    assertOwnLog(file)
    createPrivately(file)
    const db = new Database(file)
    db.pragma('synchronous = FULL')
    return targetOf(db, { file, now, unlock })
  } catch (error) {
    unlock()
    throw explainOpening(error, file)
  }
}

function targetOf(
  db: Sqlite,
  { file, now, unlock }: { file: string; now: number; unlock: () => void },
): Target {
  const placed = () => db.prepare<[], Unfinished>('SELECT origin, place FROM unfinished_copy').get()
  const setPlace = (place: Place): void =>
    void db.prepare('UPDATE unfinished_copy SET place = ?').run(JSON.stringify(place))
  return {
    place: `sqlite:${file}`,
    now,
    page: (table, after) => Promise.resolve(pageOf(db, table, after)),
    begin(origin) {
      if (db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() !== 0) {
        if (db.pragma('application_id', { simple: true }) !== COPYING_ID) throw isThere(file)
        const found = placed()
        const known = found === undefined ? null : resume(found, origin)
        if (known !== null && versionOf(db) === knownMigrations().length) return Promise.resolve(known)
      }
      db.transaction(() => {
        empty(db)
        migrate(db)
        db.exec('CREATE TABLE unfinished_copy (origin TEXT NOT NULL, place TEXT NOT NULL) STRICT')
        db.prepare('INSERT INTO unfinished_copy VALUES (?, ?)').run(
          JSON.stringify(origin),
          JSON.stringify(START),
        )
        db.pragma(`application_id = ${COPYING_ID}`)
      }).immediate()
      return Promise.resolve({ origin, place: START })
    },
    write(table, rows, { to }) {
      db.transaction(() => {
        insert(db, table, rows)
        setPlace(to)
      }).immediate()
      return Promise.resolve()
    },
    finish(numbers) {
      db.transaction(() => finish(db, numbers, now)).immediate()
      return Promise.resolve()
    },
    close() {
      db.close()
      unlock()
      return Promise.resolve()
    },
  }
}

/** Empties a copy that starts from the beginning. No sidecar has used it. */
function empty(db: Sqlite): void {
  const rows = db.prepare<[], { type: string; name: string }>(
    `SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC`,
  )
  for (const { type, name } of rows.all()) db.exec(`DROP ${type} ${name}`)
  db.pragma('user_version = 0')
}

function insert(db: Sqlite, table: Table, rows: readonly Row[]): void {
  const columns = columnsOf(table)
  const statement = db.prepare<Value[]>(
    `INSERT INTO ${table.rows ?? table.name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  for (const row of rows) statement.run(...columns.map((column) => row[column] ?? null))
}

function finish(db: Sqlite, numbers: Numbers, now: number): void {
  for (const [name, last] of Object.entries(numbers)) {
    if (name === 'handlers') continue
    db.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(name)
    db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last)
  }
  db.exec(
    'INSERT INTO session_facts SELECT session_id, pos FROM facts WHERE session_id IS NOT NULL ORDER BY session_id, pos',
  )
  const set = db.prepare('INSERT OR REPLACE INTO checkpoints (name, value) VALUES (?, ?)')
  const newest = String(db.prepare('SELECT ifnull(max(pos), 0) FROM facts').pluck().get())
  set.run('session_facts', newest)
  set.run('delivery_rows', newest)
  set.run(STEADY, String(Math.floor(now)))
  db.exec('DROP TABLE unfinished_copy')
  db.pragma(`application_id = ${APPLICATION_ID}`)
}
