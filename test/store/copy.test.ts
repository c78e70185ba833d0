import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { copyStore, type Copied, type Source, type Target } from '../../src/sidecar/store/copy/copy.ts'
import * as postgres from '../../src/sidecar/store/copy/postgres.ts'
import * as sqlite from '../../src/sidecar/store/copy/sqlite.ts'
import { keyOf, TABLES, type Key } from '../../src/sidecar/store/copy/tables.ts'
import { frameFact } from '../support/fact.ts'
import { createDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { openBacklog } from './backlog.ts'
import { everything, folder, openStore } from './database.ts'
import { databaseAt, on } from './engines.ts'
import { FULL } from '../support/full.ts'

const HANDLERS = [everything('app'), everything('audit', { ordered: false }), everything('gone')]

/** The store of a sidecar 0.1.0 that was killed (upgrade.test.ts). */
function released(name: 'version-0.1.0' | 'schema-7' = 'version-0.1.0'): string {
  const path = join(folder(), 'sidecar.db')
  for (const side of ['', '-wal']) {
    const packed = readFileSync(join(import.meta.dirname, name, `${name}.db${side}.gz`))
    writeFileSync(path + side, gunzipSync(packed))
  }
  return path
}

const idle = (): void => undefined

type Cut = (target: Target) => Target

async function copied(source: Source, open: () => Target | Promise<Target>, cut: Cut): Promise<Copied> {
  try {
    const target = await open()
    try {
      return await copyStore(source, cut(target), idle)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function toPostgres(path: string, url: string, cut: Cut = (t) => t): Promise<Copied> {
  return await copied(await sqlite.openSource(path, Date.now()), () => postgres.openTarget({ url }), cut)
}

async function toSqlite(url: string, path: string, cut: Cut = (t) => t): Promise<Copied> {
  return await copied(await postgres.openSource({ url }), () => sqlite.openTarget(path, Date.now()), cut)
}

/** Ends like a process that is killed after so many writes. */
function endsAfter(writes: number): (target: Target) => Target {
  let left = writes
  return (target) => ({
    ...target,
    async write(...given) {
      if (left-- === 0) throw new Error('killed')
      await target.write(...given)
    },
    async finish(numbers) {
      if (left-- === 0) throw new Error('killed')
      await target.finish(numbers)
    },
  })
}

describe('a store that version 0.1.0 wrote', () => {
  it('has all its facts, deliveries, attempts, calls and hints in PostgreSQL, and again in SQLite', async () => {
    const path = released()
    const url = await createDatabase()
    const there = await toPostgres(path, url)
    const back = join(folder(), 'back.db')
    expect((await toSqlite(url, back)).tables).toEqual(there.tables)
    const seen = async (engine: 'SQLite' | 'PostgreSQL', name: string) =>
      await on(engine, async () => {
        const { store } = await openStore({ path: name, dueBy: 'database' }, HANDLERS)
        const found = {
          counts: await store.read.counts(),
          handlers: await store.read.handlers(),
          facts: (await store.read.facts({ limit: 99, order: 'asc' })).rows,
          deliveries: (await store.read.deliveries({ limit: 99 })).rows.map((row) => ({
            ...row,
            nextAt: row.nextAt === null,
          })),
          calls: (await store.read.calls({ limit: 99 })).rows,
          cursor: await store.settings.checkpoint('stream'),
          subscriptions: await store.settings.subscriptions(),
          owners: await store.resources.owners(['ses_1', 'ses_2', 'ses_3']),
          held: await store.resources.heldFrames(),
        }
        await store.close()
        return found
      })
    const original = await seen('SQLite', path)
    expect(original.deliveries.length).toBeGreaterThan(20)
    expect(await seen('SQLite', back)).toEqual(original)
    // The test's own database in place of one that the store would make.
    const other = join(folder(), 'other.db')
    const name = await on('PostgreSQL', () => databaseAt(other))
    await toPostgres(released(), name)
    const moved = await seen('PostgreSQL', other)
    expect({ ...moved, counts: { ...moved.counts, bytes: 0 } }).toEqual({
      ...original,
      counts: { ...original.counts, bytes: 0 },
    })
  })

  it('gives no position or lane twice after the move', async () => {
    const path = released()
    const db = new Database(path)
    db.exec("UPDATE sqlite_sequence SET seq = seq + 1000 WHERE name IN ('facts', 'held_frames')")
    db.close()
    const url = await createDatabase()
    await toPostgres(path, url)
    const back = join(folder(), 'back.db')
    await toSqlite(url, back)
    for (const [file, least] of [
      [path, 1000],
      [back, 1000],
    ] as const) {
      const sequences = new Database(file, { readonly: true })
      const rows = sequences
        .prepare<[], { name: string; seq: number }>('SELECT name, seq FROM sqlite_sequence')
        .all()
      sequences.close()
      expect(Object.fromEntries(rows.map(({ name, seq }) => [name, seq]))['facts']).toBeGreaterThan(least)
    }
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query<{ last: string }>(
      "SELECT last FROM sidecar.positions WHERE name = 'facts'",
    )
    await client.query(
      "INSERT INTO sidecar.lanes (handler, key, shard, pending, due_at) VALUES (1, 'new', 1, 0, 0)",
    )
    await client.end()
    expect(Number(rows[0]?.last)).toBeGreaterThan(1000)
  })

  it.each(['PostgreSQL', 'SQLite'] as const)(
    'a copy into %s that ends at any point is continued, and cannot be opened before',
    async (engine) => {
      const path = released()
      const whole = await createDatabase()
      const expected = (await toPostgres(path, whole)).tables
      const url = await createDatabase()
      const file = join(folder(), 'back.db')
      const copy = async (cut: (target: Target) => Target): Promise<Copied> =>
        engine === 'PostgreSQL' ? await toPostgres(path, url, cut) : await toSqlite(whole, file, cut)
      const attempt = (writes: number): Promise<Copied | null> =>
        copy(endsAfter(writes)).catch((error: unknown) => {
          if (String(error).includes('killed')) return null
          throw error
        })
      let times = 0
      let copied: Copied | null = null
      while ((copied = await attempt(times % 4)) === null) {
        times++
        const opened =
          engine === 'PostgreSQL' ? postgres.openSource({ url }) : sqlite.openSource(file, Date.now())
        await expect(opened).rejects.toThrow('a copy that is not complete')
      }
      expect(times).toBeGreaterThan(10)
      expect(copied).toMatchObject({ continued: true, tables: expected })
    },
  )

  it('has the same remaining waits, on the clock of the database', async () => {
    const path = released()
    const db = new Database(path, { readonly: true })
    const dues = 'SELECT due_at FROM lanes WHERE due_at > 0'
    const due = db.prepare<[], number>(dues).pluck().get() ?? 0
    db.close()
    const url = await createDatabase()
    const source = await sqlite.openSource(path, due - 60_000)
    const target = await postgres.openTarget({ url })
    await copyStore(source, target, idle)
    await source.close()
    await target.close()
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query<{ wait: number }>(
      `SELECT (due_at - extract(epoch FROM clock_timestamp()) * 1000)::float AS wait FROM sidecar.lanes WHERE due_at > 0`,
    )
    await client.end()
    expect(rows[0]?.wait).toBeGreaterThan(30_000)
    expect(rows[0]?.wait).toBeLessThanOrEqual(60_000)
  })
})

describe('texts that one of the engines cannot store', () => {
  it('NUL, halves of surrogate pairs and the mark of both are as they were', async () => {
    const path = join(folder(), 'sidecar.db')
    const texts = ['a\0b', '\uE0000041', 'c\uE000d', 'ä🙂']
    await on('SQLite', async () => {
      const { store } = await openStore({ path }, [everything('app')])
      await store.log.commit({
        facts: texts.map((text, index) => ({
          ...frameFact(index + 1),
          sessionId: `ses_${text}`,
          body: JSON.stringify(text) + text,
        })),
        cursor: '4',
      })
      await store.close()
    })
    const url = await createDatabase()
    const there = await toPostgres(path, url)
    const client = new Client({ connectionString: url })
    await client.connect()
    // Half a pair is stored by PostgreSQL alone.
    await client.query('UPDATE sidecar.quarantine SET bytes = bytes')
    await client.query(
      "INSERT INTO sidecar.quarantine (at, source, reason, bytes) VALUES (1, 's', 'r', U&'x\\E000d800')",
    )
    await client.end()
    const back = join(folder(), 'back.db')
    const again = await toSqlite(url, back)
    expect(again.tables.find(({ table }) => table === 'facts')).toEqual(
      there.tables.find(({ table }) => table === 'facts'),
    )
    const db = new Database(back, { readonly: true })
    expect(db.prepare('SELECT bytes FROM quarantine').pluck().get()).toBe('x\uFFFD')
    expect(db.prepare('SELECT body FROM facts ORDER BY pos').pluck().all()).toEqual(
      texts.map((text) => JSON.stringify(text) + text),
    )
    db.close()
  })
})

describe('a copy out of a database', () => {
  it.runIf(FULL)(
    'continues after the target needed longer than a transaction of a sidecar may be idle',
    async () => {
      const url = await createDatabase()
      await toPostgres(released(), url)
      const admin = new Client({ connectionString: url })
      await admin.connect()
      /** The transaction that reads the source has waited for longer than 4 s, or is gone. */
      const hasWaited = async (): Promise<boolean> => {
        const { rows } = await admin.query<{ long: boolean }>(
          `SELECT clock_timestamp() - state_change > interval '4.2 s' AS long FROM pg_stat_activity
         WHERE datname = current_database() AND state = 'idle in transaction'`,
        )
        return rows.every(({ long }) => long)
      }
      let waited: Promise<boolean> | null = null
      const slow = (target: Target): Target => ({
        ...target,
        async page(...given) {
          await (waited ??= until('an idle transaction', hasWaited))
          return await target.page(...given)
        },
      })
      expect((await toSqlite(url, join(folder(), 'back.db'), slow)).continued).toBe(false)
      await admin.end()
    },
  )

  it('reads a backlog once, whatever its size', async () => {
    const { url, store, rowsRead } = await openBacklog(20_000)
    await store.close()
    const deliveries = TABLES.find(({ name }) => name === 'deliveries')
    if (deliveries === undefined) throw new Error('there is no such table')
    let copied = 0
    const read = await rowsRead(20_000, async () => {
      const source = await postgres.openSource({ url })
      for (let after: Key | null = null; ;) {
        const page = await source.page(deliveries, after)
        const last = page.at(-1)
        if (last === undefined) break
        copied += page.length
        after = keyOf(deliveries, last)
      }
      await source.close()
    })
    expect(copied).toBe(20_000)
    expect(read).toBeLessThan(30_000)
  })
})

describe('a copy is refused', () => {
  it('into a database or a file that is not empty', async () => {
    const url = await createDatabase()
    const path = released()
    await toPostgres(path, url)
    await expect(toPostgres(path, url)).rejects.toThrow(/holds a store already; name another database/)
    await expect(toSqlite(url, path)).rejects.toThrow('exists already')
  })

  it('of a store that is too old, or is not there', async () => {
    const url = await createDatabase()
    await expect(toPostgres(released('schema-7'), url)).rejects.toThrow(
      /before 0.1 \(schema 7\); start a sidecar on it once/,
    )
    await expect(toPostgres(join(folder(), 'none.db'), url)).rejects.toThrow('does not exist')
    await expect(toSqlite(url, join(folder(), 'none.db'))).rejects.toThrow('there is no store')
  })

  it('while a sidecar uses the source, and when one used it meanwhile', async () => {
    const path = join(folder(), 'sidecar.db')
    const { url, store } = await on('PostgreSQL', async () => ({
      url: await databaseAt(path),
      ...(await openStore({ path }, HANDLERS)),
    }))
    const back = join(folder(), 'back.db')
    await expect(toSqlite(url, back)).rejects.toThrow(`a sidecar works with ${url}`)
    await store.close()
    const source = await postgres.openSource({ url })
    const target = sqlite.openTarget(back, Date.now())
    const used = await on('PostgreSQL', () => openStore({ path }, HANDLERS))
    await used.store.close()
    await expect(copyStore(source, target, idle)).rejects.toThrow('a sidecar worked with')
    await source.close()
    await target.close()
    // The source has changed: the copy starts over, and is whole.
    expect(await toSqlite(url, back)).toMatchObject({ continued: false })
  })

  it('if the target has a part of another store', async () => {
    const url = await createDatabase()
    await expect(toPostgres(released(), url, endsAfter(2))).rejects.toThrow('killed')
    await expect(toPostgres(released(), url)).rejects.toThrow(
      /holds a copy of sqlite:.* that is not complete/,
    )
  })
})
