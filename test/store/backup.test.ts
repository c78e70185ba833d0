import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { backupStore } from '../../src/sidecar/store/sqlite/backup.ts'
import { inspectStore } from '../../src/sidecar/store/sqlite/inspect.ts'
import { cli } from '../cli/process.ts'
import { frameFact } from '../support/fact.ts'
import { folder, openStore } from './database.ts'
import { killedStore } from './files.ts'

const silent = (): void => undefined

it('copies everything that was committed while more is being written, for our user only', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store, clock } = await openStore({ path })
  const commit = async (seq: number): Promise<void> => {
    const done = store.log.commit({ facts: [frameFact(seq)], cursor: String(seq) })
    await clock.settle()
    await done
  }
  for (let seq = 1; seq <= 300; seq++) await commit(seq)
  const target = join(folder(), 'copy.db')
  const parts: number[] = []
  const copying = backupStore(path, target, ({ done, total }) => parts.push(done / total))
  for (let seq = 301; seq <= 400; seq++) await commit(seq)
  const { facts, problems } = await copying
  expect(facts).toBeGreaterThanOrEqual(300)
  expect(problems).toEqual([])
  expect(parts.length).toBeGreaterThan(0)
  expect((statSync(target).mode & 0o777).toString(8)).toBe('600')
  expect(readdirSync(join(target, '..'))).toEqual(['copy.db'])
  expect(inspectStore(target).facts).toBe(facts)
})

it('is not restarted by each commit: it shows the store at one moment', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store, clock } = await openStore({ path })
  const commit = async (seq: number): Promise<void> => {
    const done = store.log.commit({
      facts: [frameFact(seq, 'ses_1', { body: `{"text":"${'x'.repeat(8000)}"}` })],
    })
    await clock.settle()
    await done
  }
  for (let seq = 1; seq <= 2000; seq++) await commit(seq)
  const target = join(folder(), 'copy.db')
  const parts: number[] = []
  const copying = backupStore(path, target, ({ done }) => parts.push(done))
  for (let seq = 2001; parts.length < 3; seq++) await commit(seq)
  expect((await copying).problems).toEqual([])
  expect(parts).toEqual(parts.toSorted((a, b) => a - b))
  expect(new Set(parts).size).toBe(parts.length)
})

it('opens as a store of its own, at the cursor that it had', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.log.commit({ facts: [frameFact(1)], cursor: '1' })
  const target = join(folder(), 'copy.db')
  await backupStore(path, target, silent)
  await store.log.commit({ facts: [frameFact(2)], cursor: '2' })
  const copy = await openStore({ path: target })
  expect(await copy.store.settings.checkpoint('stream')).toBe('1')
  expect(await copy.store.log.commit({ facts: [frameFact(1), frameFact(2)] })).toMatchObject({
    facts: [{ seq: '2' }],
  })
})

it('never writes over a file, and leaves nothing behind when it fails', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.log.commit({ facts: [frameFact(1)] })
  const target = join(folder(), 'copy.db')
  writeFileSync(target, 'mine')
  await expect(backupStore(path, target, silent)).rejects.toThrow('exists already')
  await expect(backupStore(join(folder(), 'none.db'), `${target}2`, silent)).rejects.toThrow('does not exist')
  await expect(backupStore(path, join(folder(), 'no', 'such', 'copy.db'), silent)).rejects.toThrow(
    'could not be copied',
  )
  const theirs = join(folder(), 'theirs.db')
  const db = new Database(theirs)
  db.exec('CREATE TABLE recipes (name TEXT)')
  db.close()
  await expect(backupStore(theirs, `${target}3`, silent)).rejects.toThrow('another program')
  expect(readdirSync(join(target, '..'))).toEqual(['copy.db'])
})

it('refuses to keep the copy of a damaged store', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.log.commit({ facts: [frameFact(1)] })
  await store.close()
  const db = new Database(path)
  db.prepare("UPDATE facts SET body = '{}'").run()
  db.close()
  const target = join(folder(), 'copy.db')
  await expect(backupStore(path, target, silent)).rejects.toThrow(
    'is damaged, so its copy would be damaged too',
  )
  expect(existsSync(target)).toBe(false)
})

// The name of what is cut short was a fixed one, and what had it was removed unasked: another backup, or the store itself.
it('changes nothing but its own copy, with any files beside the target', async () => {
  const target = join(folder(), 'copy.db')
  const path = `${target}.partial`
  const { store } = await openStore({ path })
  await store.log.commit({ facts: [frameFact(1)] })
  const both = await Promise.allSettled([
    backupStore(path, target, silent),
    backupStore(path, target, silent),
  ])
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { message: `store: ${target} exists already. Name a new file.` },
  })
  expect(inspectStore(target)).toMatchObject({ facts: 1, problems: [] })
  expect(inspectStore(path)).toMatchObject({ facts: 1, problems: [] })
})

it('store restore where only the log of a deleted database is left: reports that log, and no database', async () => {
  const path = await killedStore()
  const backup = join(folder(), 'backup.db')
  await backupStore(path, backup, silent)
  rmSync(path)
  const config = join(folder(), 'sidecar.json')
  writeFileSync(config, JSON.stringify({ store: { url: `sqlite:${path}` } }))
  const { code, out, err } = await cli(['store', 'restore', backup, '-c', config])
  expect([code, err]).toEqual([0, ''])
  expect(out).not.toContain('the former database is kept')
  const log =
    /^there was no database, only its write-ahead log, which is kept: (\S+-wal)$/m.exec(out)?.[1] ?? ''
  expect(existsSync(log)).toBe(true)
})
