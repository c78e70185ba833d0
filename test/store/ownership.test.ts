import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { StoreError } from '../../src/core/store-error.ts'
import { backupStore } from '../../src/sidecar/store/sqlite/backup.ts'
import { openSqliteStore, type SqliteOptions } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { folder, openStore } from './database.ts'
import { bytesOf, checkpoint, commitFrames, copyStore, factsIn, killedStore } from './files.ts'

/** Milliseconds within which a process notices what was done to its files. */
const NOTICED = 2000

async function watched(path = join(folder(), 'sidecar.db')) {
  const lost: StoreError[] = []
  const refused: unknown[] = []
  const opened = await openStore({
    path,
    onLost: (error) => lost.push(error),
    onRefused: (error) => refused.push(error),
  })
  await commitFrames(opened.store, 1, 5)
  const { store } = opened
  /** Nothing is written, and nothing is handed out that could be acted on. */
  const expectLost = async (kind: string, says: string): Promise<void> => {
    expect(lost).toHaveLength(1)
    expect(lost[0]).toMatchObject({ kind, message: expect.stringContaining(says) })
    const write = store.log.commit({ facts: [frameFact(99)] })
    await expect(write).rejects.toMatchObject({ name: 'StoreError', kind })
    await expect(store.hints.claim(1)).rejects.toMatchObject({ kind })
    await expect(store.lanes.claim({ handler: 'app', lanes: 1 })).rejects.toMatchObject({ kind })
    expect(lost).toHaveLength(1)
  }
  return { ...opened, path, lost, refused, expectLost }
}

/** A second process, as where the lock file was removed. */
function second(path: string, more: Partial<SqliteOptions> = {}) {
  rmSync(`${path}-lock`)
  const store = openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog(), ...more })
  onTestFinished(() => store.close())
  return store
}

describe('a second process on the same files', () => {
  it('fences the first, whose next commit is refused with all that wait', async () => {
    const { store, path, lost, refused, expectLost } = await watched()
    const other = second(path)
    const writes = await Promise.allSettled(
      [6, 7].map((seq) => store.log.commit({ facts: [frameFact(seq)] })),
    )
    expect(writes).toMatchObject([
      { status: 'rejected', reason: { kind: 'fenced' } },
      { status: 'rejected', reason: { kind: 'fenced' } },
    ])
    expect(refused).toMatchObject([{ kind: 'fenced' }, { kind: 'fenced' }])
    expect(lost[0]?.message).toContain('epoch 1, now 2')
    await expectLost('fenced', 'another process has taken the store over')
    await commitFrames(other, 8, 1)
    await store.close()
    const { rows } = await other.read.facts({ limit: 100, order: 'asc' })
    expect(rows.map(({ seq }) => seq)).toEqual(['1', '2', '3', '4', '5', '8'])
  })

  it('is noticed within seconds by a process without writes', async () => {
    const { clock, path, lost, expectLost } = await watched()
    second(path)
    await clock.advance(NOTICED - 1)
    expect(lost).toEqual([])
    await clock.advance(1)
    await expectLost('fenced', 'another process has taken the store over')
  })

  it('that is one of a chain fences each before it', async () => {
    const { store: first, path } = await watched()
    const next = second(path)
    const last = second(path)
    await expect(commitFrames(first, 6, 1)).rejects.toMatchObject({ kind: 'fenced' })
    await expect(commitFrames(next, 6, 1)).rejects.toMatchObject({ kind: 'fenced' })
    await commitFrames(last, 6, 1)
  })

  it('leaves the store to the first when a full disk stops its start', async () => {
    const { store, clock, path, lost } = await watched()
    const { lanes } = await store.log.commit({
      facts: Array.from({ length: 200 }, (_, index) => frameFact(index + 6)),
    })
    for (const { lane, deliveries } of lanes)
      store.lanes.begin(
        lane,
        deliveries.map(({ fact }) => fact.pos),
      )
    // Long enough to be written down: the start records the attempts as cut, and has no room for that.
    await clock.advance(50)
    expect(() => second(path, { maxPages: 1 })).toThrow('full')
    await clock.advance(NOTICED)
    expect(lost).toEqual([])
    await commitFrames(store, 300, 1)
  })

  it('continues if a full disk refuses to copy the log of the first into the file', async () => {
    const { store, path, expectLost } = await watched()
    const { pragma } = Database.prototype
    const full = vi.spyOn(Database.prototype, 'pragma').mockImplementation(function (
      this: typeof Database.prototype,
      text,
      options,
    ) {
      if (text.startsWith('wal_checkpoint'))
        throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
      return pragma.call(this, text, options)
    })
    const other = second(path)
    full.mockRestore()
    await commitFrames(other, 6, 1)
    await expect(commitFrames(store, 7, 1)).rejects.toMatchObject({ kind: 'fenced' })
    await expectLost('fenced', 'another process has taken the store over')
    const { rows } = await other.read.facts({ limit: 100, order: 'asc' })
    expect(rows.map(({ seq }) => seq)).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  it.each(['while the first runs', 'again and again'])('under a hard link is refused: %s', async (times) => {
    const { store, path, lost, clock } = await watched()
    const link = join(dirname(path), 'link.db')
    linkSync(path, link)
    for (let time = 0; time < (times === 'again and again' ? 3 : 1); time++) {
      expect(() => openSqliteStore({ path: link, clock, log: keepingLog() })).toThrow(
        `${link} is in use by another process, maybe under another name (a hard link`,
      )
    }
    await commitFrames(store, 6, 1)
    await clock.advance(NOTICED)
    expect(lost).toEqual([])
    await store.close()
    expect(factsIn(path)).toBe(6)
    // No process has it open now: a second name does no harm.
    await openSqliteStore({ path: link, clock, log: keepingLog() }).close()
  })
})

describe('files that change under a running process', () => {
  it('deleted: noticed, nothing more is accepted, and at the end the file is written again', async () => {
    const { store, clock, path, log, expectLost } = await watched()
    rmSync(path)
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} was deleted`)
    await store.close()
    expect(factsIn(path)).toBe(5)
    expect(readdirSync(dirname(path)).toSorted()).toEqual(['sidecar.db', 'sidecar.db-lock'])
    expect(JSON.stringify(log.lines)).toContain('this process has written it back')
    const { store: again } = await openStore({ path })
    await commitFrames(again, 6, 1)
  })

  it('deleted with its folder: logged, and the process ends normally', async () => {
    const { store, clock, path, log, expectLost } = await watched(join(folder(), 'deep', 'sidecar.db'))
    rmSync(dirname(path), { recursive: true })
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} was deleted`)
    await store.close()
    expect(JSON.stringify(log.lines)).toContain('could not be saved')
  })

  it('replaced: noticed, the new file is not changed, and the old content is kept beside it', async () => {
    const { store, clock, path, expectLost } = await watched()
    const other = await killedStore(3)
    for (const side of ['', '-wal']) renameSync(other + side, path + side)
    const before = bytesOf(path)
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} is another file now`)
    await store.close()
    expect(bytesOf(path)).toEqual(before)
    const kept = readdirSync(dirname(path)).filter((name) => name.includes('.replaced-'))
    expect(kept).toHaveLength(1)
    expect(factsIn(join(dirname(path), kept[0] ?? ''))).toBe(5)
    const { store: again } = await openStore({ path })
    expect((await again.read.facts({ limit: 10, order: 'asc' })).rows).toHaveLength(3)
  })

  it('replaced by a backup: the log of the old database does not stay beside it', async () => {
    const { store, clock, path, expectLost } = await watched()
    const backup = join(folder(), 'backup.db')
    await backupStore(path, backup, () => undefined)
    await commitFrames(store, 6, 5)
    renameSync(backup, path)
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} is another file now`)
    await store.close()
    const { store: again } = await openStore({ path })
    expect((await again.read.facts({ limit: 10, order: 'asc' })).rows).toHaveLength(5)
  })

  it.each([
    ['a backup', (path: string, backup: string) => copyFileSync(backup, path)],
    ['another program’s file', (path: string) => writeFileSync(path, 'Milk, eggs, flour. '.repeat(500))],
    ['nothing', (path: string) => truncateSync(path)],
  ])('overwritten in place by %s: noticed, and not a byte of it is changed', async (_, overwrite) => {
    const { store, clock, path, expectLost } = await watched()
    const backup = join(folder(), 'backup.db')
    await backupStore(path, backup, () => undefined)
    await commitFrames(store, 6, 5)
    overwrite(path, backup)
    const [before] = bytesOf(path)
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} was overwritten`)
    await store.close()
    expect(bytesOf(path)).toEqual([before, expect.anything()])
  })

  it('overwritten in place by a backup: the next start goes on from that', async () => {
    const { store, clock, path, expectLost } = await watched()
    const backup = join(folder(), 'backup.db')
    await backupStore(path, backup, () => undefined)
    await commitFrames(store, 6, 5)
    copyFileSync(backup, path)
    await clock.advance(NOTICED)
    await expectLost('lost', `${path} was overwritten`)
    await store.close()
    expect(factsIn(path)).toBe(5)
    const { store: again } = await openStore({ path })
    await commitFrames(again, 6, 1)
  })

  it.each(['-wal', '-shm'])(
    '%s deleted: noticed, and its content is in the file at the end',
    async (side) => {
      const { store, clock, path, expectLost } = await watched()
      rmSync(path + side)
      await clock.advance(NOTICED)
      await expectLost('lost', `${path}${side} was deleted or replaced`)
      await store.close()
      expect(factsIn(path)).toBe(5)
      await openStore({ path })
    },
  )

  it('the lock alone deleted, a checkpoint by hand, a VACUUM: nothing is wrong', async () => {
    const { store, clock, path, lost } = await watched()
    rmSync(`${path}-lock`)
    checkpoint(path)
    const other = new Database(path)
    other.exec('VACUUM')
    other.close()
    await commitFrames(store, 6, 3)
    checkpoint(path)
    await clock.advance(10 * NOTICED)
    expect(lost).toEqual([])
    await store.close()
    expect(existsSync(`${path}-wal`)).toBe(false)
    expect(factsIn(copyStore(path, join(folder(), 'after.db')))).toBe(8)
  })
})
