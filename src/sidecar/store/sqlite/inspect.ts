import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, messageOf, OperatorError } from '../../../std/errors.ts'
import { recogniseStore, type Sqlite } from './open.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './log.ts'
import { alteredDefinitions, knownMigrations, versionOf } from './schema.ts'
import { STEADY } from './committer.ts'
import { assertOwnLog } from './wal.ts'

/** Problems of one kind that are listed; further ones are only counted. */
const LISTED = 20

export interface Inspection {
  file: string
  bytes: number
  /** Number of the last migration of the store, and (`newest`) of this program. */
  schema: number
  newest: number
  facts: number
  pending: number
  dead: number
  openCalls: number
  /** The stream's cursor. */
  cursor: string | null
  /** When the store was last written: our wall clock in milliseconds, exact to the second; null: never. */
  writtenAt: number | null
  /** One sentence for each problem; empty when there is none. */
  problems: string[]
}

/**
 * Checks a whole store and changes nothing; a sidecar may have it open. Runs SQLite's own check, verifies the checksum
 * of every fact, and compares counters with the rows that they count.
 * @throws {OperatorError} when the file is missing, is not a store, is newer than this program, or cannot be read.
 */
export function inspectStore(path: string): Inspection {
  return reading(path, (db, file) => ({
    file,
    bytes: sizeOf(file) + sizeOf(`${file}-wal`),
    schema: versionOf(db),
    newest: knownMigrations().length,
    ...counts(db),
    problems: [...definitions(db), ...structure(db), ...damagedFacts(db), ...disagreements(db)],
  }))
}

/**
 * A check that is fast for a store of any size: the file is a store, of a known version, with unchanged definitions.
 * @throws {OperatorError} as `inspectStore`.
 */
export function glanceAtStore(path: string): string[] {
  return reading(path, definitions)
}

/** In one transaction, so that all counts are of the same moment. */
function reading<T>(path: string, read: (db: Sqlite, file: string) => T): T {
  const file = resolve(path)
  if (!existsSync(file)) throw new OperatorError(`store: ${file} does not exist.`)
  let db: Sqlite | null = null
  try {
    assertOwnLog(file)
    db = new Database(file, { readonly: true })
    recogniseStore(db, file)
    db.exec('BEGIN')
    return read(db, file)
  } catch (error) {
    throw unreadable(error, file)
  } finally {
    db?.close()
  }
}

/** A checkpoint of a database that is not open; null when there is none, or the file cannot be read. */
export function checkpointIn(file: string, name: string): string | null {
  return lookInto(file, (db) => checkpointOf(db, name))
}

/** The number of the last migration of a database that is not open; 0 when the file cannot be read. */
export function schemaIn(file: string): number {
  return lookInto(file, versionOf) ?? 0
}

function lookInto<T>(file: string, look: (db: Sqlite) => T): T | null {
  let db: Sqlite | null = null
  try {
    db = new Database(file, { readonly: true })
    return look(db)
  } catch {
    return null
  } finally {
    db?.close()
  }
}

function checkpointOf(db: Sqlite, name: string): string | null {
  return (
    db.prepare<[string], string>('SELECT value FROM checkpoints WHERE name = ?').pluck().get(name) ?? null
  )
}

/** The file cannot be opened because of rights, a lock or the file system: its data may be sound. */
const IN_THE_WAY = /^SQLITE_(CANTOPEN|READONLY|IOERR|BUSY|LOCKED|PERM|AUTH)/

function unreadable(error: unknown, file: string): OperatorError {
  if (error instanceof OperatorError) return error
  if (IN_THE_WAY.test(codeOf(error))) {
    return new OperatorError(
      `store: ${file} cannot be opened (${messageOf(error)}), so its content was not checked. Correct the permissions ` +
        'of the file and of its folder. If the file system is read-only, check a copy of the file.',
    )
  }
  return new OperatorError(
    `store: ${file} cannot be read (${messageOf(error)}). It was not changed. Put a backup in its place, or rename it ` +
      'to start with an empty store.',
  )
}

/** The size of a file; 0 when it is missing. A store in use may have all its data in the WAL. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

function counts(
  db: Sqlite,
): Pick<Inspection, 'facts' | 'pending' | 'dead' | 'openCalls' | 'cursor' | 'writtenAt'> {
  const number = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
  const written = Number(checkpointOf(db, STEADY) ?? 0)
  return {
    facts: number('SELECT count(*) FROM facts'),
    pending: number('SELECT count(*) FROM deliveries WHERE status = 0'),
    dead: number('SELECT count(*) FROM deliveries WHERE status = 2'),
    openCalls: number('SELECT count(*) FROM calls WHERE ended_at IS NULL'),
    cursor: checkpointOf(db, 'stream') || null,
    writtenAt: written > 0 ? written : null,
  }
}

function definitions(db: Sqlite): string[] {
  return alteredDefinitions(db).map((name) => `the definition of ${name} has changed`)
}

function structure(db: Sqlite): string[] {
  const rows = db.prepare<[], string>(`PRAGMA integrity_check(${LISTED})`).pluck().all()
  return rows.filter((row) => row !== 'ok').map((row) => `structure: ${row}`)
}

function damagedFacts(db: Sqlite): string[] {
  const problems: string[] = []
  let more = 0
  const rows = db.prepare<[], FactRow>(`SELECT ${FACT_COLUMNS} FROM facts f ORDER BY f.pos`)
  for (const row of rows.iterate()) {
    if (factOf(row) !== null) continue
    if (problems.length < LISTED)
      problems.push(`fact ${row.id} (position ${row.pos}) has changed: its checksum does not match`)
    else more++
  }
  if (more > 0) problems.push(`and ${more} more facts`)
  return problems
}

/** Each statement finds rows that should not exist. */
const DISAGREEMENTS: readonly [string, string][] = [
  [
    'SELECT count(*) FROM deliveries d LEFT JOIN facts f ON f.pos = d.fact_pos WHERE f.pos IS NULL',
    'deliveries have no fact',
  ],
  [
    `SELECT count(*) FROM lanes l
     LEFT JOIN (SELECT lane, count(*) AS rows FROM deliveries WHERE status = 0 GROUP BY lane) d ON d.lane = l.id
     WHERE l.pending <> ifnull(d.rows, 0)`,
    'lanes have a wrong number of pending deliveries',
  ],
  [
    'SELECT count(*) FROM deliveries d LEFT JOIN lanes l ON l.id = d.lane WHERE d.status = 0 AND l.id IS NULL',
    'pending deliveries are in no lane',
  ],
  ['SELECT count(*) FROM calls WHERE NOT json_valid(action)', 'calls cannot be read'],
  ['SELECT count(*) FROM sessions WHERE NOT json_valid(raw)', 'sessions cannot be read'],
  ['SELECT count(*) FROM turns WHERE raw IS NOT NULL AND NOT json_valid(raw)', 'turns cannot be read'],
]

function disagreements(db: Sqlite): string[] {
  return DISAGREEMENTS.flatMap(([sql, problem]) => {
    const found = db.prepare<[], number>(sql).pluck().get() ?? 0
    return found === 0 ? [] : [`${found} ${problem}`]
  })
}
