import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { folderWith } from '../config/folder.ts'
import { programUnderTest } from '../support/build.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { PostgresServer } from '../support/postgres.ts'
import { text } from './documents.ts'

/** Debian's servers: their programs for backups fit them, and the package of the other tests has none. */
const DEBIAN = '/usr/lib/postgresql'
const [newest] = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : []
const programs = newest === undefined ? null : path.join(DEBIAN, newest)
const whole =
  programs !== null &&
  existsSync(path.join(programs, 'bin/pg_basebackup')) &&
  existsSync(path.join(programs, 'bin/postgres'))
if (!whole)
  process.stderr.write('the database runbook is NOT run: there is no postgresql package of Debian here\n')

const blocks = [...text('config/README.md').matchAll(/^```sh database\n([\s\S]*?)^```/gm)].map(
  ([, block = '']) => block,
)

test('the runbook has commands for size, backup, restore and the password', () => {
  expect(blocks).toHaveLength(4)
})

describe.skipIf(!whole)('the database runbook', () => {
  let server: PostgresServer
  let folder = ''

  beforeAll(async () => {
    server = await PostgresServer.start(['fsync=off'], programs ?? '')
    const admin = new Client({ connectionString: server.url() })
    await admin.connect()
    // As the document says it.
    const [, sql = ''] = /```sql[^\n]*\n(CREATE ROLE[\s\S]*?)```/.exec(text('config/README.md')) ?? []
    for (const statement of sql.split('\n').filter((line) => line !== '')) await admin.query(statement)
    await admin.end()
  })
  afterAll(() => server.stop())

  const database = (): string => server.url('sidecar').replace('postgres@', 'sidecar@')

  function run(block: string): string {
    const { main } = programUnderTest()
    const script = block.replaceAll('session-sidecar ', `"${process.execPath}" "${main}" `)
    return execFileSync('sh', ['-euc', script], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        PATH: `${path.join(programs ?? '', 'bin')}:${process.env['PATH'] ?? ''}`,
        DATABASE: database(),
        ADMIN: server.url(),
        LC_ALL: 'C.UTF-8',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  test('measures, backs up, restores and rotates as documented', async () => {
    folder = await folderWith({
      'sidecar.yaml': `service: { base_url: "http://127.0.0.1:9", token: x }\nstore: { url: "${database()}" }\n`,
    })
    const store = await openPostgresStore({
      database: { url: database() },
      clock: systemClock(),
      log: keepingLog(),
      random: systemRandom(),
    })
    await store.log.commit({ facts: [frameFact(1), frameFact(2)], cursor: '2' })
    const [sizes = '', backup = '', restore = '', password = ''] = blocks
    expect(run(sizes)).toMatch(/facts +\| +/)
    run(backup)
    expect(existsSync(path.join(folder, 'base/backup_manifest'))).toBe(true)
    await store.log.commit({ facts: [frameFact(3)], cursor: '3' })
    await store.close()
    expect(run(restore)).toContain('2 facts')
    run(password)
    expect(readFileSync(path.join(folder, 'database-password'), 'utf8')).toBe('the-new-password')
  })
})
