import Database from 'better-sqlite3'
import { openDatabase, type Sqlite } from '../../src/sidecar/store/sqlite/open.ts'

/** On small pages a full disk is felt by the next row or two; usual ones are faster. */
export const PAGES = [512, 4096, 4096, 4096]

/** What pruning takes rows of, and the table that has the rows. The oracle asks `all_facts` and so on, which have them still. */
const PRUNED = { facts: 'facts', deliveries: 'delivery_rows', calls: 'calls' }

/** What the oracle asks of a call's step. */
const STEP_COLUMNS = [
  'state',
  'deferred',
  'outcome',
  'unsure',
  'attempts',
  'uncertain',
  'result_text',
] as const

/** Databases that a seed gave back, empty again, by what they are made for. */
const idle = new Map<string, Sqlite[]>()
let schema: readonly string[] | null = null

/**
 * An empty database in memory. To use one again saves compiling its statements, which is dearer than what a seed asks.
 * `keeping`: what is pruned is kept where the oracle finds it, at a cost.
 */
export function newDatabase(pageSize: number, keeping: boolean): Sqlite {
  return idle.get(kindOf(pageSize, keeping))?.pop() ?? makeDatabase(pageSize, keeping)
}

function kindOf(pageSize: number, keeping: boolean): string {
  return `${pageSize} ${keeping}`
}

/** Takes a database back whose seed is over. */
export function release(db: Sqlite): void {
  emptyDisk(db)
  for (const table of [...tablesOf(db), ...keptIn(db), 'call_steps']) db.prepare(`DELETE FROM ${table}`).run()
  // Free pages would let the next seed's full disk take more.
  db.pragma('incremental_vacuum')
  const kind = kindOf(Number(db.pragma('page_size', { simple: true })), keptIn(db).length > 0)
  const others = idle.get(kind)
  if (others === undefined) idle.set(kind, [db])
  else others.push(db)
}

function makeDatabase(pageSize: number, keeping: boolean): Sqlite {
  schema ??= readSchema()
  const db = new Database(':memory:')
  db.pragma(`page_size = ${pageSize}`)
  db.pragma('auto_vacuum = INCREMENTAL')
  for (const statement of schema) db.exec(statement)
  for (const [name, table] of Object.entries(PRUNED)) keepRows(db, name, table, keeping)
  noteSteps(db)
  return remembering(db)
}

/** What is temporary takes no room of the disk that is filled, and is unknown to the sidecar. */
function keepRows(db: Sqlite, name: string, table: string, keeping: boolean): void {
  if (!keeping) return void db.exec(`CREATE TEMP VIEW all_${name} AS SELECT * FROM ${name}`)
  const columns = db.prepare<[], string>(`SELECT name FROM pragma_table_info('${table}')`).pluck().all()
  db.exec(`
    CREATE TEMP TABLE gone_${name} AS SELECT * FROM ${table};
    CREATE TEMP TRIGGER keep_${name} AFTER DELETE ON ${table} BEGIN
      INSERT INTO gone_${name} VALUES (${columns.map((name) => `old.${name}`).join(', ')});
    END;
    CREATE TEMP VIEW all_${name} AS SELECT * FROM ${name} UNION ALL SELECT * FROM gone_${name}`)
}

/** Each step of a call, also where one transaction holds several. */
function noteSteps(db: Sqlite): void {
  const row = (of: string): string =>
    `json_object(${STEP_COLUMNS.map((name) => `'${name}', ${of}.${name}`).join(', ')})`
  db.exec(`
    CREATE TEMP TABLE call_steps (call_id TEXT, before TEXT, after TEXT);
    CREATE TEMP TRIGGER note_step AFTER UPDATE OF state ON calls BEGIN
      INSERT INTO call_steps VALUES (old.call_id, ${row('old')}, ${row('new')});
    END`)
}

function keptIn(db: Sqlite): string[] {
  const named = "SELECT name FROM sqlite_temp_schema WHERE type = 'table' AND name LIKE 'gone%'"
  return db.prepare<[], string>(named).pluck().all()
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

/** Nothing that is written is taken, as where the log before the database cannot grow. */
export function closeDisk(db: Sqlite): void {
  db.pragma('query_only = ON')
}

export function emptyDisk(db: Sqlite): void {
  db.pragma('query_only = OFF')
  db.pragma(`max_page_count = ${PLENTY}`)
}

/** Whether a row more could be refused. */
export function isDiskRefusing(db: Sqlite): boolean {
  return (
    db.pragma('query_only', { simple: true }) === 1 ||
    Number(db.pragma('max_page_count', { simple: true })) < PLENTY
  )
}
