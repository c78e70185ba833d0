import { Client, types } from 'pg'
import { QUERIES, type Pages } from '../books.ts'

const INT8 = 20

/** The program's database in PostgreSQL, as SQL sees it: nothing of ours is asked. */
export class PostgresBooks {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** @throws {Error} while the server is unreachable, or has no tables of ours. */
  async pages(): Promise<Pages> {
    return await this.#read(async (client) => {
      const rows = async <Row>(sql: string): Promise<Row[]> => (await client.query(sql)).rows as Row[]
      // One moment for all.
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      return {
        facts: await rows(QUERIES.facts),
        deliveries: await rows(QUERIES.deliveries),
        calls: await rows(QUERIES.calls),
        sessions: await rows(QUERIES.sessions),
        turns: await rows(QUERIES.turns),
        openActions: await rows(QUERIES.openActions),
        webhookSecrets: (await rows<{ secret: string }>(QUERIES.webhookSecrets)).map(({ secret }) => secret),
        hinted: new Set(
          (await rows<{ session_id: string }>(QUERIES.hinted)).map(({ session_id }) => session_id),
        ),
        cursor: Number((await rows<{ value: string | null }>(QUERIES.cursor))[0]?.value ?? 0),
      }
    })
  }

  /** Deliveries that are pending. */
  async pending(): Promise<number> {
    return await this.#read(async (client) => {
      const { rows } = await client.query<{ count: number }>(QUERIES.pending)
      return rows[0]?.count ?? 0
    })
  }

  /** Runs SQL of the test. @returns the rows, if it is one statement. */
  async run<Row>(sql: string): Promise<Row[]> {
    return await this.#read(async (client) => (await client.query(sql)).rows as Row[])
  }

  /** The rows of each table, as text. */
  async dump(): Promise<[table: string, text: string][]> {
    return await this.#read(async (client) => {
      const { rows: tables } = await client.query<{ name: string }>(
        "SELECT relname AS name FROM pg_class WHERE relnamespace = 'sidecar'::regnamespace AND relkind = 'r'",
      )
      const texts: [string, string][] = []
      for (const { name } of tables) {
        const { rows } = await client.query<{ text: string }>(
          `SELECT t::text AS text FROM sidecar."${name}" t`,
        )
        texts.push([name, rows.map(({ text }) => text).join('\n')])
      }
      return texts
    })
  }

  /** Ends connections of the program, as an administrator does. @returns how many. */
  async terminate(share: number): Promise<number> {
    return await this.#read(async (client) => {
      const { rowCount } = await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'agent-session-sidecar' AND random() < $1`,
        [share],
      )
      return rowCount ?? 0
    })
  }

  async #read<T>(act: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({
      connectionString: this.#url,
      options: '-c search_path=sidecar',
      connectionTimeoutMillis: 2000,
      types: {
        getTypeParser: (oid: number, format?: 'text' | 'binary') =>
          oid === INT8 ? Number : types.getTypeParser(oid, format ?? 'text'),
      },
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return await act(client)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}
