import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { backupStore } from '../../src/sidecar/store/sqlite/backup.ts'
import { glanceAtStore, inspectStore } from '../../src/sidecar/store/sqlite/inspect.ts'
import { OWNER_SCHEMA } from '../../src/sidecar/store/sqlite/owner-page.ts'
import { Ownership } from '../../src/sidecar/store/sqlite/committer.ts'
import { knownMigrations, migrate } from '../../src/sidecar/store/sqlite/schema.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'
import { folder, openStore } from './database.ts'
import { bytesOf, checkpoint, commitFrames, copyStore, factsIn, killedStore } from './files.ts'

const silent = (): void => undefined

/** The facts that a store has when it was opened. */
async function opened(path: string): Promise<number> {
  const store = openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog() })
  const { rows } = await store.read.facts({ limit: 1000, order: 'asc' })
  await store.close()
  return rows.length
}

async function backupOf(path: string): Promise<string> {
  const target = join(folder(), 'backup.db')
  await backupStore(path, target, silent)
  return target
}

/** What everything that would let SQLite see the log says; both files are as they were. @throws when one does not refuse. */
async function refusalOf(path: string): Promise<string> {
  const before = bytesOf(path).join(' ')
  const target = join(folder(), 'copy.db')
  const ways: (() => unknown)[] = [() => opened(path)]
  if (existsSync(path))
    ways.push(
      () => inspectStore(path),
      () => glanceAtStore(path),
      () => backupStore(path, target, silent),
    )
  const said = new Set<string>()
  for (const way of ways) {
    try {
      await way()
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      said.add(error.message)
      continue
    }
    throw new Error(`${String(way)} did not refuse it`)
  }
  if (bytesOf(path).join(' ') !== before || existsSync(target)) throw new Error('a file was changed')
  return [...said].join('\n')
}

/** The store of the version before owners, as a killed process left it: twelve facts in the file, three in the log. */
function formerStore(path: string, sides: readonly string[] = ['', '-wal']): string {
  for (const side of sides) {
    const packed = readFileSync(join(import.meta.dirname, 'schema-7', `schema-7.db${side}.gz`))
    writeFileSync(path + side, gunzipSync(packed))
  }
  return path
}

describe('a log of another database', () => {
  it('beside a backup that was copied over a small store: refused, with what to do', async () => {
    const path = await killedStore()
    const backup = await backupOf(path)
    copyFileSync(backup, path)
    expect(await refusalOf(path)).toContain('was replaced')
    await expect(opened(path)).rejects.toThrow(`mv ${path}-wal ${path}.old-wal && rm -f ${path}-shm`)
    await expect(opened(path)).rejects.toThrow('session-sidecar store restore BACKUP')
    for (const [side, to] of [
      ['-wal', `${path}.old-wal`],
      ['-shm', null],
    ] as const) {
      if (to !== null) copyFileSync(path + side, to)
      rmSync(path + side, { force: true })
    }
    expect(await opened(path)).toBe(10)
  })

  it('beside a backup that another file was made of: refused', async () => {
    const path = await killedStore()
    const backup = await backupOf(path)
    rmSync(path)
    copyFileSync(backup, path)
    expect(await refusalOf(path)).toContain('was replaced')
  })

  it('beside a plain copy of an earlier run: refused', async () => {
    const path = join(folder(), 'sidecar.db')
    const first = await openStore({ path })
    await commitFrames(first.store, 1, 5)
    await first.store.close()
    const copy = copyStore(path, join(folder(), 'copy.db'))
    const second = await openStore({ path })
    await commitFrames(second.store, 6, 5)
    copyStore(path, copy, ['-wal'])
    expect(await refusalOf(copy)).toContain('was replaced')
  })

  // Its owner is the log's own, and so is its page: only the count of commits differs.
  it('beside a plain copy that was made earlier in the same run: refused', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    await commitFrames(store, 1, 5)
    checkpoint(path)
    const copy = copyStore(path, join(folder(), 'copy.db'), [''])
    for (let round = 0; round < 3; round++) {
      await commitFrames(store, 6 + 5 * round, 5)
      checkpoint(path)
    }
    await commitFrames(store, 21, 1)
    copyStore(path, copy, ['-wal'])
    expect(await refusalOf(copy)).toContain('was replaced')
  })

  it('that is older than the file: refused', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    await commitFrames(store, 1, 5)
    const copy = copyStore(path, join(folder(), 'copy.db'), ['-wal'])
    checkpoint(path)
    await commitFrames(store, 6, 5)
    checkpoint(path)
    copyStore(path, copy, [''])
    expect(await refusalOf(copy)).toContain('was replaced')
  })

  it('without a file: refused, and no empty store takes its place', async () => {
    const path = await killedStore()
    rmSync(path)
    expect(await refusalOf(path)).toContain('does not exist')
    expect(existsSync(path)).toBe(false)
    writeFileSync(path, '')
    expect(await refusalOf(path)).toContain('was replaced')
  })

  it('that only another program wrote: refused without a claim, and its commits can be kept', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    await commitFrames(store, 1, 5)
    await store.close()
    const other = new Database(path)
    other.exec('DELETE FROM facts WHERE pos = 1; CREATE TABLE mine (x); DROP TABLE mine')
    const killed = copyStore(path, join(folder(), 'killed.db'))
    other.close()
    const refusal = await refusalOf(killed)
    expect(refusal).not.toContain('was replaced')
    expect(refusal).toContain(`${killed}-wal has no commit of this version`)
    expect(refusal).toContain(`sqlite3 ${killed} 'PRAGMA wal_checkpoint(TRUNCATE)'`)
    checkpoint(killed)
    expect(await opened(killed)).toBe(4)
  })

  it('of the version before, beside a backup of this one, and the other way round: refused', async () => {
    const path = await killedStore()
    const backup = await backupOf(path)
    formerStore(path, ['-wal'])
    copyFileSync(backup, path)
    expect(await refusalOf(path)).toContain('has no commit of this version')
    expect(await refusalOf(formerStore(await killedStore(), ['']))).toContain('was replaced')
  })
})

describe('a log of its own database', () => {
  it('is taken after a kill at any commit, with the file and nothing else copied', async () => {
    const path = join(folder(), 'sidecar.db')
    for (let run = 0; run < 3; run++) {
      const { store } = await openStore({ path })
      for (let step = 0; step < 6; step++) {
        await commitFrames(store, 1 + run * 6 + step, 1)
        if (step === 2) checkpoint(path)
        const copy = copyStore(path, join(folder(), 'copy.db'))
        expect(await opened(copy)).toBe(1 + run * 6 + step)
      }
      await store.close()
    }
  })

  it('is taken where a reader kept the start from writing it into the file', async () => {
    const path = await killedStore()
    const reader = new Database(path)
    reader.exec('BEGIN; SELECT count(*) FROM facts')
    const { store } = await openStore({ path })
    await commitFrames(store, 11, 2)
    const copy = copyStore(path, join(folder(), 'copy.db'))
    expect(await opened(copy)).toBe(12)
    reader.close()
  })

  it('is taken after a crash at each step of two starts in a row', async () => {
    const path = await killedStore()
    for (let start = 0; start < 2; start++) {
      const db = new Database(path, { timeout: 10 })
      const reader = new Database(path)
      // Keeps the checkpoint of the start from ending, as a crash in its midst does.
      reader.exec('BEGIN; SELECT count(*) FROM facts')
      const { epoch } = new Ownership(db).lease
      expect(epoch).toBe(start + 2)
      expect(await opened(copyStore(path, join(folder(), 'copy.db')))).toBe(10)
      reader.close()
      db.pragma('wal_checkpoint(PASSIVE)')
      const copy = copyStore(path, join(folder(), 'copy.db'))
      expect(await opened(copy)).toBe(10)
      const next = copyStore(path, join(folder(), 'next.db'))
      db.close()
      copyStore(next, path)
    }
  })

  it('is taken after a kill between any two migrations', async () => {
    for (let from = OWNER_SCHEMA; from < knownMigrations().length; from++) {
      const path = join(folder(), 'sidecar.db')
      const db = new Database(path)
      db.pragma('journal_mode = WAL')
      migrate(db, from)
      expect(new Ownership(db).lease.epoch).toBe(1)
      for (let last = from + 1; last <= knownMigrations().length; last++) {
        migrate(db, last)
        expect(await opened(copyStore(path, join(folder(), `killed-${from}-${last}.db`)))).toBe(0)
      }
      db.close()
    }
  })

  it('is taken where it was written by the version before, whose backlog goes on', async () => {
    const path = formerStore(join(folder(), 'sidecar.db'))
    expect(inspectStore(path)).toMatchObject({
      schema: OWNER_SCHEMA - 1,
      facts: 15,
      pending: 15,
      problems: [],
    })
    const { store } = await openStore({ path })
    expect(await store.settings.checkpoint('stream')).toBe('15')
    const [lane] = await store.lanes.claim({ handler: 'app', lanes: 10 })
    if (lane === undefined) throw new Error('no lane is pending')
    expect((await store.lanes.read(lane, 0, 100, 1e6)).deliveries).toHaveLength(15)
    await store.close()
    expect(inspectStore(path)).toMatchObject({ facts: 15, pending: 15, problems: [] })
  })
})

it('a backup has an owner of its own, and readers take none', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await commitFrames(store, 1, 3)
  const rowOf = (file: string): unknown => {
    const db = new Database(file, { readonly: true })
    const row = db.prepare('SELECT owner, epoch FROM owner').get()
    db.close()
    return row
  }
  const before = rowOf(path)
  inspectStore(path)
  const backup = await backupOf(path)
  expect(rowOf(path)).toEqual(before)
  expect(rowOf(backup)).not.toEqual(before)
  await commitFrames(store, 4, 1)
  expect(factsIn(backup)).toBe(3)
})
