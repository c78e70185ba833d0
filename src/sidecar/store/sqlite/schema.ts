import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { OWNER_SCHEMA } from './owner-page.ts'

/** Marks the file as ours: "SDCR". */
export const APPLICATION_ID = 0x53444352
/** Marks a copy from PostgreSQL that is not complete: "SDCP". */
export const COPYING_ID = 0x53444350
const MIGRATIONS = join(import.meta.dirname, 'migrations')

/** Names of the migrations, in order. */
export function knownMigrations(): string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}\.sql$/.test(name))
    .sort()
}

/** The number of the last migration of a database. */
export function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }))
}

/**
 * Brings a database to the newest version, or to version `last`, in one transaction: if the process is killed during an
 * upgrade, the old version remains.
 */
export function migrate(db: Database.Database, last = Infinity): void {
  const version = versionOf(db)
  const names = knownMigrations().slice(version, last)
  if (names.length === 0) return
  db.transaction(() => {
    for (const name of names) db.exec(readFileSync(join(MIGRATIONS, name), 'utf8'))
    // If the process is killed after an upgrade, its WAL has only this commit, and must name the owner (wal.ts).
    if (version >= OWNER_SCHEMA) db.exec('UPDATE owner SET commits = commits + 1')
    db.pragma(`user_version = ${version + names.length}`)
    db.pragma(`application_id = ${APPLICATION_ID}`)
  }).immediate()
}

/**
 * Tables, indexes and triggers that differ from those of the migrations. SQLite's own check does not find a changed letter in
 * a definition: a wrong index or a missing column would be accepted.
 */
export function alteredDefinitions(db: Database.Database): string[] {
  const pure = new Database(':memory:')
  try {
    migrate(pure, versionOf(db))
    const found = definitionsOf(db)
    return [...definitionsOf(pure)].flatMap(([name, sql]) => (found.get(name) === sql ? [] : [name]))
  } finally {
    pure.close()
  }
}

function definitionsOf(db: Database.Database): Map<string, string> {
  const rows = db
    .prepare<[], { name: string; sql: string }>('SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL')
    .all()
  return new Map(rows.map(({ name, sql }) => [name, sql]))
}
