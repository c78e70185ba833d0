import { copyFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { Client } from 'pg'
import { cli } from '../cli/process.ts'
import type { Rig } from './rig.ts'

/** What operators and other programs do to a store, past its sidecar. */
export interface Outside {
  /** Makes a backup, also while the sidecar runs. @returns what restores it, while none runs */
  backUp(): Promise<() => Promise<void>>
  /** A lock for which writes of the sidecar wait, and reads do not. */
  lock(): Promise<AsyncDisposable>
  /** Makes the sidecar that runs lose the store. @returns what that sidecar says */
  lose(): Promise<string>
}

/** The store of a rig, on its engine. */
export function outside(rig: Rig): Outside {
  const url = String(rig.config.store?.url)
  return url.startsWith('sqlite:') ? ofFile(rig, url.slice('sqlite:'.length)) : ofDatabase(url)
}

/** The configuration as the commands read it. */
export async function configFile(rig: Rig): Promise<string> {
  const file = path.join(rig.folder, 'commands.json')
  await writeFile(file, JSON.stringify(rig.config))
  return file
}

function ofFile(rig: Rig, store: string): Outside {
  return {
    async backUp() {
      const kept = path.join(rig.folder, 'kept.db')
      const { code, err } = await cli(['store', 'backup', kept, '-c', await configFile(rig)])
      if (code !== 0) throw new Error(err)
      return async () => {
        for (const side of ['', '-wal', '-shm']) rmSync(store + side, { force: true })
        copyFileSync(kept, store)
      }
    },
    async lock() {
      const db = new Database(store)
      db.exec('BEGIN IMMEDIATE')
      return { [Symbol.asyncDispose]: async () => void db.close() }
    },
    async lose() {
      rmSync(store)
      return `${store} was deleted`
    },
  }
}

function ofDatabase(url: string): Outside {
  return {
    async backUp() {
      await using db = await connect(url)
      const restore = await dump(db)
      return async () => {
        await using later = await connect(url)
        await later.run(restore)
      }
    },
    async lock() {
      const db = await connect(url)
      // As CREATE INDEX does. Each write of a sidecar changes a row of this table.
      await db.run(['BEGIN', 'LOCK TABLE sidecar.commits IN SHARE MODE'])
      return db
    },
    async lose() {
      await using db = await connect(url)
      // As another replica does, when this one has not renewed its leases for too long.
      await db.run(['SELECT sidecar.take_over(id, extract(epoch FROM seen)) FROM sidecar.replicas'])
      return 'another process has taken the store over'
    },
  }
}

interface Connection extends AsyncDisposable {
  run(statements: readonly string[]): Promise<void>
  names(text: string): Promise<string[]>
}

async function connect(url: string): Promise<Connection> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return {
    async run(statements) {
      for (const statement of statements) await client.query(statement)
    },
    async names(text) {
      const { rows } = await client.query<[string]>({ text, rowMode: 'array' })
      return rows.map(([name]) => name)
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/**
 * Copies what pg_dump would write, which the server of the tests lacks: the rows of one moment, and the sequences.
 * @returns the statements that restore them
 */
async function dump(db: Connection): Promise<string[]> {
  await db.run(['BEGIN ISOLATION LEVEL REPEATABLE READ', 'CREATE SCHEMA kept'])
  const tables = await db.names("SELECT tablename FROM pg_tables WHERE schemaname = 'sidecar'")
  const sequences = await db.names(
    `SELECT format('SELECT setval(''sidecar.%I'', %s)', sequencename, last_value) FROM pg_sequences
     WHERE schemaname = 'sidecar' AND last_value IS NOT NULL`,
  )
  await db.run([...tables.map((name) => `CREATE TABLE kept.${name} AS TABLE sidecar.${name}`), 'COMMIT'])
  return [
    'BEGIN',
    `TRUNCATE ${tables.map((name) => `sidecar.${name}`).join(', ')}`,
    ...tables.map((name) => `INSERT INTO sidecar.${name} OVERRIDING SYSTEM VALUE TABLE kept.${name}`),
    ...sequences,
    'COMMIT',
  ]
}
