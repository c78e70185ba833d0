import Database from 'better-sqlite3'
import { Client } from 'pg'

/** Looks into the tables of a store, past the port. The statements are those that both engines understand. */
export interface Tables {
  /** @returns the number of rows that it changed */
  change(text: string): Promise<number>
  /** The only value of the only row. */
  value(text: string): Promise<unknown>
  close(): Promise<void>
}

/** `url`: of the store, as in the configuration. */
export function openTables(url: string): Promise<Tables> {
  return url.startsWith('sqlite:') ? inFile(url.slice('sqlite:'.length)) : inDatabase(url)
}

/** The file is open only while a statement runs. */
async function inFile(path: string): Promise<Tables> {
  const on = <T>(readonly: boolean, use: (db: Database.Database) => T): T => {
    const db = new Database(path, { readonly })
    try {
      return use(db)
    } finally {
      db.close()
    }
  }
  return {
    change: async (text) => on(false, (db) => db.prepare(text).run().changes),
    value: async (text) => on(true, (db) => db.prepare(text).pluck().get()),
    close: async () => undefined,
  }
}

async function inDatabase(url: string): Promise<Tables> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('SET search_path = sidecar')
  return {
    change: async (text) => (await client.query(text)).rowCount ?? 0,
    async value(text) {
      const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
      const value = rows[0]?.[0]
      return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
    },
    close: () => client.end(),
  }
}
