import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { inspectStore } from '../../src/sidecar/store/sqlite/inspect.ts'
import { openDatabase } from '../../src/sidecar/store/sqlite/open.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { folder, openStore } from './database.ts'

const SRC = join(import.meta.dirname, '../../src')

function open(path: string) {
  return openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog() })
}

function refusal(path: string): OperatorError {
  try {
    void open(path).close()
  } catch (error) {
    if (error instanceof OperatorError) return error
    throw error
  }
  throw new Error('the store was opened')
}

function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** A store of some pages, closed. */
async function filled(): Promise<string> {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.log.commit({ facts: Array.from({ length: 200 }, (_, seq) => frameFact(seq + 1)) })
  await store.close()
  return path
}

describe('opening the store', () => {
  it('warns about a store that every user may read, and prints the fix', async () => {
    const path = await filled()
    const lines = async (): Promise<unknown[]> => {
      const log = keepingLog()
      await openSqliteStore({ path, clock: new VirtualClock(), log }).close()
      return log.lines
    }
    chmodSync(path, 0o640)
    expect(await lines()).toEqual([])
    chmodSync(path, 0o644)
    expect(JSON.stringify(await lines())).toContain('"rights":"644"')
  })

  it('lets only our user read the database and its side files', async () => {
    const path = join(folder(), 'deep', 'sidecar.db')
    const { store } = await openStore({ path })
    await store.log.commit({ facts: [frameFact(1)] })
    for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-lock`]) {
      expect([file, (statSync(file).mode & 0o777).toString(8)]).toEqual([file, '600'])
    }
    expect((statSync(join(path, '..')).mode & 0o777).toString(8)).toBe('700')
  })

  // Found by `npm run attack -- --door database`: the start ended in an error of the driver.
  it.each([
    {
      name: 'a letter of a table',
      sql: "UPDATE sqlite_schema SET sql = replace(sql, 'finished_at', 'finished_aT') WHERE name = 'calls'",
      altered: 'calls',
    },
    {
      name: 'what an index is of',
      sql: "UPDATE sqlite_schema SET sql = replace(sql, 'status = 2', 'status = 3') WHERE name = 'deliveries_dead'",
      altered: 'deliveries_dead',
    },
    { name: 'an index that is gone', sql: 'DROP INDEX hints_due', altered: 'hints_due' },
    { name: 'a trigger that is gone', sql: 'DROP TRIGGER session_added', altered: 'session_added' },
  ])('refuses a database whose definitions were altered: $name', async ({ sql, altered }) => {
    const path = await filled()
    const db = new Database(path)
    db.unsafeMode()
    db.pragma('writable_schema = ON')
    db.exec(sql)
    db.close()
    const before = hashOf(path)
    expect(refusal(path).message).toContain(`damaged (the definition of ${altered} has changed)`)
    expect(hashOf(path)).toBe(before)
    expect(inspectStore(path).problems).toContain(`the definition of ${altered} has changed`)
  })

  it('accepts a database with an added index', async () => {
    const path = await filled()
    const db = new Database(path)
    db.exec('CREATE INDEX mine ON facts (type)')
    db.close()
    await open(path).close()
    expect(inspectStore(path).problems).toEqual([])
  })

  it('writes in WAL with synchronous=FULL, on every open', () => {
    const path = join(folder(), 'sidecar.db')
    for (const time of ['first', 'second']) {
      const { db, unlock } = openDatabase(path)
      expect([time, db.pragma('journal_mode', { simple: true })]).toEqual([time, 'wal'])
      expect([time, db.pragma('synchronous', { simple: true })]).toEqual([time, 2])
      db.close()
      unlock()
    }
  })

  // [fault process-9]
  it('refuses a file that another process uses, says so, and takes it when that one is killed', async () => {
    const path = join(folder(), 'sidecar.db')
    const program = `
      import { openDatabase } from ${JSON.stringify(join(SRC, 'sidecar/store/sqlite/open.ts'))}
      // Kept: a database that is collected is closed, and its lock is free.
      globalThis.kept = openDatabase(${JSON.stringify(path)})
      process.stdout.write('open')
      setInterval(() => undefined, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')

    const { message, exitCode } = refusal(path)
    expect(message).toBe(
      `store: ${path} is in use by another sidecar; stop it first, or use another store (store.url)`,
    )
    expect(exitCode).toBe(1)

    child.kill('SIGKILL')
    await once(child, 'exit')
    await open(path).close()
  })

  it('refuses a second store in this process on the same file', async () => {
    const path = join(folder(), 'sidecar.db')
    await openStore({ path })
    expect(refusal(path).message).toContain('in use by another sidecar')
    const link = join(folder(), 'link.db')
    symlinkSync(path, link)
    expect(refusal(link).message).toContain(`${path} is in use by another sidecar`)
  })

  // To close a file frees all locks of a process on it: the next process to close the database
  // deleted its log.
  it('keeps others out, and its log in place, after a second store in this process was refused', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    expect(refusal(path).message).toContain('in use by another sidecar')
    const program = `
      import Database from 'better-sqlite3'
      import { openDatabase } from ${JSON.stringify(join(SRC, 'sidecar/store/sqlite/open.ts'))}
      new Database(${JSON.stringify(path)}).exec('SELECT count(*) FROM facts').close()
      openDatabase(${JSON.stringify(path)})`
    const child = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: SRC,
      encoding: 'utf8',
    })
    expect(child.stderr).toContain('is in use by another sidecar')
    expect(existsSync(`${path}-wal`)).toBe(true)
    await store.log.commit({ facts: [frameFact(1)] })
    const copy = join(folder(), 'copy.db')
    for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, `${copy}${end}`)
    const db = new Database(copy)
    expect(db.prepare('SELECT count(*) FROM facts').pluck().get()).toBe(1)
    db.close()
  })

  // [fault process-7]
  it('refuses a file of a newer version and leaves it alone', async () => {
    const path = await filled()
    const db = new Database(path)
    db.pragma('user_version = 99')
    db.close()
    const before = hashOf(path)
    expect(refusal(path).message).toMatch(/written by a newer version \(schema 99, this program knows \d+\)/)
    expect(hashOf(path)).toBe(before)
  })

  it('refuses the database of some other program and leaves it alone', () => {
    const path = join(folder(), 'theirs.db')
    const db = new Database(path)
    db.exec('CREATE TABLE recipes (name TEXT)')
    db.close()
    const before = hashOf(path)
    expect(refusal(path).message).toContain('database of another program')
    expect(hashOf(path)).toBe(before)
  })

  it('refuses a file that is no database at all', () => {
    const path = join(folder(), 'notes.txt')
    writeFileSync(path, 'Milk, eggs, flour. '.repeat(500))
    const before = hashOf(path)
    expect(refusal(path).message).toContain('is damaged')
    expect(hashOf(path)).toBe(before)
  })

  it('refuses a folder where no file can be, as a fault of the configuration', () => {
    const file = join(folder(), 'file')
    writeFileSync(file, '')
    const { message, exitCode } = refusal(join(file, 'sidecar.db'))
    expect(message).toContain(`store: cannot open ${file}/sidecar.db`)
    expect(exitCode).toBe(2)
  })

  it.skipIf(!existsSync('/proc/self'))('refuses a folder in /proc, where none can be created', () => {
    expect(refusal('/proc/missing/sidecar.db').exitCode).toBe(2)
  })

  it('makes the folders that are missing, for our user alone', async () => {
    const outer = join(folder(), 'some')
    await open(join(outer, 'where', 'sidecar.db')).close()
    for (const made of [outer, join(outer, 'where')]) expect(statSync(made).mode & 0o777).toBe(0o700)
  })

  // [fault process-7]
  it.each([
    ['bytes flipped in its pages', (path: string) => flip(path)],
    [
      'a half of it missing',
      (path: string) => truncateSync(path, Math.floor(statSync(path).size / 2 / 4096) * 4096),
    ],
    ['a header of noise', (path: string) => overwrite(path, 0, 64)],
  ])('refuses a file with %s: prints the fix and does not change the file', async (_, damage) => {
    const path = await filled()
    damage(path)
    const before = hashOf(path)
    const { message } = refusal(path)
    expect(message).toContain(`${path} is damaged`)
    expect(message).toContain('Put a backup in its place, or rename it to start with an empty store')
    expect(hashOf(path)).toBe(before)
  })

  it('closes the file when it was refused', async () => {
    const path = await filled()
    const whole = readFileSync(path)
    flip(path)
    refusal(path)
    writeFileSync(path, whole)
    const { store } = await openStore({ path })
    expect(await store.settings.checkpoint('stream')).toBeNull()
  })

  it('finds everything again after it was closed', async () => {
    const path = await filled()
    const { store } = await openStore({ path })
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: 200, dead: 0 } } })
  })
})

/** Every page but the first loses the head of its b-tree. */
function flip(path: string): void {
  const pages = statSync(path).size / 4096
  for (let page = 1; page < pages; page++) overwrite(path, page * 4096, 12)
}

function overwrite(path: string, offset: number, length: number): void {
  const bytes = readFileSync(path)
  for (let index = offset; index < offset + length; index++) bytes[index] = (bytes[index] ?? 0) ^ 0xa5
  writeFileSync(path, bytes)
}
