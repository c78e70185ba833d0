import { hash } from 'node:crypto'
import { closeSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { OperatorError } from '../../std/errors.ts'
import { createFolder } from '../../std/folder.ts'

/** Marks the file as an emulator's: "SEMU". */
const APPLICATION_ID = 0x53454d55
/** The shape of the records; a file with a later one is refused. */
const VERSION = 2
/** The migration at an index converts records of that version to the next. */
const UPGRADES = [
  '',
  // Before 2, a webhook delivery that had not ended had a status of another name.
  `UPDATE record SET json = json_set(json, '$.status', 'pending')
   WHERE kind = 'delivery' AND json_valid(json) AND json_extract(json, '$.status') NOT IN ('delivered', 'dead')`,
]
/** Up to this size the whole file is checked at each start. A check of a larger file would take seconds. */
const CHECKED_AT_START = 64 * 1024 * 1024
/** How long a start waits for a process that is about to close the file, milliseconds. */
const BUSY_MS = 1000

const TABLES = `
  CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE record (kind TEXT, place INTEGER, json TEXT NOT NULL, PRIMARY KEY (kind, place)) WITHOUT ROWID;
  CREATE TABLE blob (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL);
`

/** A data file that cannot be used, with a message for its user. */
export class DataFileError extends OperatorError {
  override readonly name = 'DataFileError'

  constructor(message: string) {
    super(message, 2)
  }
}

/**
 * Writes one record, removes one (`json` null), or removes all records of a kind whose place is lower than `below`.
 */
export type Change = { kind: string; place: number; json: string | null } | { kind: string; below: number }

interface Row {
  place: number
  json: string
}

/**
 * The data file of an emulator: records by kind and position, and bytes by their hash. A file that
 * is in a workspace, in its snapshot and among the artifacts is stored once. Only one process at a
 * time may use it.
 */
export class DataFile {
  readonly path: string
  readonly #db: Database.Database
  readonly #write: (changes: readonly Change[], facts: Readonly<Record<string, string>>) => void
  readonly #hashes = new WeakMap<Uint8Array, string>()
  /** Bytes that are referenced and not in the file yet. */
  #fresh = new Map<string, Uint8Array>()
  readonly #loaded = new Map<string, Uint8Array>()

  /**
   * Opens the file, or creates it. `profile`: the choice of open details, which the stored resources use. @throws
   * {DataFileError} when the file is damaged, foreign, of another version or profile, or in use.
   */
  constructor(path: string, profile: string) {
    this.path = resolve(path)
    try {
      this.#db = open(this.path)
    } catch (error) {
      throw explain(error, this.path)
    }
    try {
      prepare(this.#db, this.path, profile)
    } catch (error) {
      this.#db.close()
      throw explain(error, this.path)
    }
    this.#write = this.#db.transaction((changes, facts) => this.#apply(changes, facts))
  }

  /** True if no emulator has stored anything in it yet. */
  get fresh(): boolean {
    return this.fact('clock_now') === undefined
  }

  fact(name: string): string | undefined {
    return this.#db.prepare<[string], string>('SELECT value FROM fact WHERE name = ?').pluck().get(name)
  }

  /** The records of a kind, in the order of their places. */
  rows(kind: string): Row[] {
    return this.#db
      .prepare<[string], Row>('SELECT place, json FROM record WHERE kind = ? ORDER BY place')
      .all(kind)
  }

  /** Writes all changes or none. @throws {DataFileError} */
  commit(changes: readonly Change[], facts: Readonly<Record<string, string>>): void {
    try {
      this.#write(changes, facts)
    } catch (error) {
      throw explain(error, this.path)
    }
    this.#fresh.clear()
  }

  /** The name of these bytes in the file, now or after the next commit. */
  hashOf(bytes: Uint8Array): string {
    const known = this.#hashes.get(bytes)
    if (known !== undefined) return known
    const name = hash('sha256', bytes)
    this.#hashes.set(bytes, name)
    this.#fresh.set(name, bytes)
    return name
  }

  /** @throws {DataFileError} when the file does not have bytes of this name. */
  bytes(name: string): Uint8Array {
    const loaded = this.#loaded.get(name)
    if (loaded !== undefined) return loaded
    const bytes = this.#db
      .prepare<[string], Buffer>('SELECT bytes FROM blob WHERE hash = ?')
      .pluck()
      .get(name)
    if (bytes === undefined) throw damaged(this.path, `the bytes ${name} are missing`)
    this.#loaded.set(name, bytes)
    this.#hashes.set(bytes, name)
    return bytes
  }

  /** Called after everything is loaded: removes bytes that no record uses. */
  sweep(): void {
    const names = this.#db.prepare<[], string>('SELECT hash FROM blob').pluck().all()
    const remove = this.#db.prepare('DELETE FROM blob WHERE hash = ?')
    this.#db.transaction(() => {
      for (const name of names) if (!this.#loaded.has(name)) remove.run(name)
    })()
    this.#loaded.clear()
  }

  close(): void {
    this.#db.close()
  }

  #apply(changes: readonly Change[], facts: Readonly<Record<string, string>>): void {
    const blob = this.#db.prepare('INSERT OR IGNORE INTO blob (hash, bytes) VALUES (?, ?)')
    for (const [name, bytes] of this.#fresh) blob.run(name, bytes)
    const put = this.#db.prepare('REPLACE INTO record (kind, place, json) VALUES (?, ?, ?)')
    const remove = this.#db.prepare('DELETE FROM record WHERE kind = ? AND place = ?')
    const removeBelow = this.#db.prepare('DELETE FROM record WHERE kind = ? AND place < ?')
    for (const change of changes) {
      if ('below' in change) removeBelow.run(change.kind, change.below)
      else if (change.json === null) remove.run(change.kind, change.place)
      else put.run(change.kind, change.place, change.json)
    }
    const fact = this.#db.prepare('REPLACE INTO fact (name, value) VALUES (?, ?)')
    for (const [name, value] of Object.entries(facts)) fact.run(name, value)
  }
}

export function damaged(path: string, what: string): DataFileError {
  return new DataFileError(
    `${path} is damaged: ${what}. It was not changed; restore a copy of it, or name another file.`,
  )
}

/** The file holds tokens and keys: only our user may read it. SQLite gives its side files the same mode. */
function open(path: string): Database.Database {
  createFolder(dirname(path))
  closeSync(openSync(path, 'a', 0o600))
  return new Database(path, { timeout: BUSY_MS })
}

/** Recognises the file before it writes anything to it. */
function prepare(db: Database.Database, path: string, profile: string): void {
  // The lock is held until the process ends, even if it is killed.
  db.pragma('locking_mode = EXCLUSIVE')
  const empty = db.prepare<[], number>('SELECT count(*) FROM sqlite_schema').pluck().get() === 0
  if (!empty) recognise(db, path, profile)
  db.pragma('journal_mode = WAL')
  // If the process dies, no commit is lost. If the machine loses power, the last commits may be lost.
  db.pragma('synchronous = NORMAL')
  // The first write takes the lock.
  db.pragma(`application_id = ${APPLICATION_ID}`)
  db.transaction(() => {
    if (empty) {
      db.exec(TABLES)
      db.prepare('INSERT INTO fact (name, value) VALUES (?, ?)').run('open_details', profile)
    } else for (const upgrade of UPGRADES.slice(versionOf(db))) db.exec(upgrade)
    db.pragma(`user_version = ${VERSION}`)
  })()
}

function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }))
}

function recognise(db: Database.Database, path: string, profile: string): void {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new DataFileError(
      `${path} is a database of another program. It was not changed. Name another file.`,
    )
  }
  const version = versionOf(db)
  if (version < 1 || version > VERSION) {
    throw new DataFileError(
      `${path} was written by another version (${version}, this one reads ${VERSION}). ` +
        'It was not changed. Run that version, or name another file.',
    )
  }
  if (statSync(path).size <= CHECKED_AT_START) {
    const verdict = db.prepare<[], string>('PRAGMA quick_check(1)').pluck().get()
    if (verdict !== 'ok') throw damaged(path, String(verdict).replaceAll(/\s+/g, ' '))
  }
  const written = db.prepare<[], string>("SELECT value FROM fact WHERE name = 'open_details'").pluck().get()
  if (written !== profile) {
    throw new DataFileError(
      `${path} was written with the open details ${String(written)}, and this emulator answers with ${profile}. ` +
        `Start it with ${String(written)}, or name another file.`,
    )
  }
}

function explain(error: unknown, path: string): Error {
  if (!(error instanceof Error) || error instanceof DataFileError) return error as Error
  const code = 'code' in error ? String(error.code) : ''
  if (code.startsWith('SQLITE_BUSY')) {
    return new DataFileError(`${path} is in use by another emulator. Stop it, or name another file.`)
  }
  if (code === 'SQLITE_NOTADB') {
    return new DataFileError(
      `${path} is not a data file of an emulator. It was not changed. Name another file.`,
    )
  }
  if (code.startsWith('SQLITE_CORRUPT')) return damaged(path, error.message)
  if (code === 'SQLITE_FULL' || code.startsWith('SQLITE_IOERR')) {
    return new DataFileError(
      `${path} cannot be written: ${error.message}. Is the disk full? The file has everything that was sent so far; free disk space and start again.`,
    )
  }
  return new DataFileError(`${path} cannot be used: ${error.message}`)
}
