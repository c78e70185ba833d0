import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sidecar/store/postgres/database.ts'
import { createDatabase } from '../support/postgres.ts'

const FOLDER = path.join(import.meta.dirname, '../../src/sidecar/store/postgres')
const files = globSync('**/*.{ts,sql}', { cwd: FOLDER })
const holders = (pattern: RegExp): string[] =>
  files.filter((file) => pattern.test(readFileSync(path.join(FOLDER, file), 'utf8')))

describe('no statement of the store on PostgreSQL', () => {
  it('takes a lock that outlives its transaction: behind a pooler, it would be another client’s', () => {
    expect(holders(/advisory_xact_lock/).length).toBeGreaterThan(1)
    expect(holders(/pg_(try_)?advisory_lock|advisory_unlock/)).toEqual([])
  })

  it('claims rows by SKIP LOCKED: under a forgotten transaction, each claim would pass all dead rows', () => {
    expect(holders(/SKIP LOCKED/)).toEqual([])
  })

  it('notifies in a transaction with other statements: each commit would wait for a lock of the whole server', () => {
    expect(holders(/pg_notify|NOTIFY '/)).toEqual(['wakes.ts'])
  })
})

describe('an int8', () => {
  it('arrives as a number, and is refused if a number does not hold it', async () => {
    const database = await openDatabase({ url: await createDatabase() }, () => undefined)
    onTestFinished(() => database.close())
    expect(await database.rows('SELECT 9007199254740991::bigint AS pos')).toEqual([{ pos: 2 ** 53 - 1 }])
    await expect(database.rows('SELECT 9007199254740993::bigint AS pos')).rejects.toThrow('above 2^53')
  })
})
