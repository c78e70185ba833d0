import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import type { Store } from '../../src/core/store.ts'
import { until } from '../support/until.ts'
import { everything, openStore } from './database.ts'
import { databaseAt, on } from './engines.ts'

interface Backlog {
  url: string
  store: Store
  /**
   * How many rows of `tables`, by default facts, the statements of `run` read, by the statistics of the server; they come
   * when a connection ends.
   */
  rowsRead(least: number, run: () => Promise<void>, tables?: readonly string[]): Promise<number>
}

/**
 * A store in PostgreSQL in which so many facts of so many sessions wait for the handler `app`. `then`: SQL that changes that.
 */
export async function openBacklog(facts: number, sessions = 100, then = ''): Promise<Backlog> {
  const path = `backlog ${randomUUID()}`
  const { url, store } = await on('PostgreSQL', async () => ({
    url: await databaseAt(path),
    ...(await openStore({ path }, [everything('app'), everything('other')])),
  }))
  const admin = new Client({ connectionString: url })
  await admin.connect()
  onTestFinished(() => admin.end())
  await admin.query(`
    INSERT INTO sidecar.facts (pos, id, type, session_id, at, family, body, checksum, wanted)
      SELECT n, n, 'agent.message', 'ses_' || n % ${sessions}, 0, 'transcript', '{}', 0, 2 FROM generate_series(1, ${facts}) AS n;
    INSERT INTO sidecar.lanes (handler, key, shard, pending, due_at, fresh)
      SELECT 1, session_id, 0, count(*), 0, min(pos) FROM sidecar.facts GROUP BY session_id;
    ${then};
    ANALYZE sidecar.facts; ANALYZE sidecar.lanes; ANALYZE sidecar.delivery_rows`)
  await admin.query('SELECT pg_stat_force_next_flush()')
  const rowsOf = async (tables: readonly string[]): Promise<number> => {
    const { rows } = await admin.query<{ read: string }>(
      'SELECT sum(seq_tup_read + idx_tup_fetch) AS read FROM pg_stat_user_tables WHERE relname = ANY ($1)',
      [tables],
    )
    return Number(rows[0]?.read)
  }
  return {
    url,
    store,
    async rowsRead(least, run, tables = ['facts']) {
      const read = (): Promise<number> => rowsOf(tables)
      const before = await read()
      await run()
      // They may come in parts.
      let seen = -1
      return await until('the statistics', async () => {
        const more = (await read()) - before
        const isWhole = more >= least && more === seen
        seen = more
        return isWhole && more
      })
    },
  }
}
