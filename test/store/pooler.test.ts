import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/sidecar/store/postgres/database.ts'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import type { Store } from '../../src/core/store.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { cli } from '../cli/process.ts'
import { folderWith } from '../config/folder.ts'
import { frameFact } from '../support/fact.ts'
import { freePort } from '../support/listen.ts'
import { keepingLog } from '../support/ports.ts'
import { administer, createDatabase } from '../support/postgres.ts'
import { Wire } from '../support/postgres-wire.ts'
import { until } from '../support/until.ts'
import { everything } from './database.ts'
import { openProcess } from './process.ts'

const installed =
  spawnSync('pgbouncer', ['--version'], { env: { PATH: `/usr/sbin:${process.env['PATH'] ?? ''}` } })
    .status === 0
if (!installed) process.stderr.write('PgBouncer is NOT tried: it is not installed\n')

/** The pooler drops the limits of a connection in place of refusing them. */
const IGNORING =
  'ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout'

/** A pooler that gives a connection to another client after each transaction. @returns the address behind it. */
async function pool(url: string, settings: readonly string[]): Promise<string> {
  const { hostname, port, username, pathname } = new URL(url)
  const folder = mkdtempSync(path.join(tmpdir(), 'sidecar-pooler-'))
  const listening = await freePort()
  const file = path.join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${hostname} port=${port} user=${username}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${listening}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'default_pool_size = 3',
      ...settings,
    ].join('\n'),
  )
  chmodSync(folder, 0o755)
  const child = spawn('pgbouncer', [file], {
    env: { PATH: `/usr/sbin:${process.env['PATH'] ?? ''}` },
    stdio: 'ignore',
    ...(process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}),
  })
  onTestFinished(async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    if (child.kill('SIGKILL')) await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until(
    'a pooler',
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(listening, '127.0.0.1', () => resolve(true))
        socket.once('error', () => resolve(false))
        socket.once('connect', () => socket.destroy())
      }),
  )
  return `postgres://${username}@127.0.0.1:${listening}${pathname}`
}

describe.skipIf(!installed).each([
  ['refuses the limits of a connection', []],
  ['drops them', [IGNORING]],
] as const)('behind a pooler in transaction mode that %s', (_name, settings) => {
  test('a store works, its transactions keep their limits, and check says what is missing', async () => {
    const url = await pool(await createDatabase(), settings)
    const warnings: string[] = []
    const warned = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const store = await openPostgresStore({
      database: { url },
      clock: systemClock(),
      log: keepingLog(),
      random: systemRandom(),
    })
    onTestFinished(() => store.close())
    await store.settings.registerHandlers([everything('app')])
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        index % 2 === 0
          ? store.log.commit({ facts: [frameFact(index), frameFact(index + 1)], cursor: String(index) })
          : store.read.facts({ limit: 10, order: 'asc' }),
      ),
    )
    expect((await store.read.facts({ limit: 99, order: 'asc' })).rows).toHaveLength(60)
    const database = await openDatabase({ url }, () => undefined)
    onTestFinished(() => database.close())
    const transaction = await database.begin()
    const [limits] = await transaction.rows<{ lock: string }>(
      "SELECT current_setting('lock_timeout') AS lock",
    )
    await transaction.rollback()
    expect(limits?.lock).toMatch(/^[1-9]\d*s$/)
    expect(warnings).toEqual([])
    const folder = await folderWith({
      'sidecar.yaml': `service: { base_url: "http://127.0.0.1:9", token: x }\nstore: { url: "${url}" }\n`,
    })
    const checked = await cli(['check', '-c', path.join(folder, 'sidecar.yaml')])
    expect(checked.out).toMatch(/✓ store .*the connection goes through a pooler/)
  })
})

test.skipIf(!installed)(
  'behind a pooler, a commit is on disk where the role does not wait for that',
  async () => {
    const direct = await createDatabase()
    const { pathname } = new URL(direct)
    await administer(direct, `ALTER DATABASE ${pathname.slice(1)} SET synchronous_commit = off`)
    const database = await openDatabase({ url: await pool(direct, []) }, () => undefined)
    onTestFinished(() => database.close())
    const transaction = await database.begin()
    const setting = "SELECT current_setting('synchronous_commit') AS setting"
    expect(await transaction.rows(setting)).toEqual([{ setting: 'on' }])
    await transaction.rollback()
    // The next client gets the connection as it was.
    expect(await database.rows(setting)).toEqual([{ setting: 'off' }])
  },
)

test.skipIf(!installed)(
  'two replicas behind a pooler share the work, and one takes over that of the other',
  async () => {
    const url = await pool(await createDatabase(), [])
    const open = async (): Promise<Store> => {
      const { store } = await openProcess(url)
      await store.settings.registerHandlers([everything('app')])
      await store.shards.join()
      return store
    }
    const [one, other] = [await open(), await open()]
    const sessions = Array.from({ length: 20 }, (_, index) => `ses_${index}`)
    await until(
      'shards of both',
      () => {
        const count = sessions.filter((session) => other.shards.owns(session)).length
        return count > 0 && count < sessions.length
      },
      20_000,
    )
    const woken: string[] = []
    other.shards.subscribe({ woken: ({ topics }) => void woken.push(...topics) })
    const { lanes } = await one.log.commit({
      facts: sessions.map((session, index) => frameFact(index + 1, session)),
      cursor: '20',
    })
    const ours = lanes.filter(({ claimed }) => claimed).map(({ lane }) => lane)
    // No notification arrives: a timer finds it.
    await until('a look at the lanes', () => woken.includes('lanes'), 8000)
    const theirs = await other.lanes.claim({ handler: 'app', lanes: 99 })
    expect([...ours, ...theirs].map(({ key }) => key).toSorted()).toEqual(sessions.toSorted())
    for (const lane of theirs) await other.lanes.release(lane)
    await other.close()
    await until('all shards', () => sessions.every((session) => one.shards.owns(session)), 20_000)
    expect(await one.lanes.claim({ handler: 'app', lanes: 99 })).toHaveLength(theirs.length)
  },
)

test.skipIf(!installed)('a pooler is found although the database has the same limit of its own', async () => {
  const direct = await createDatabase()
  const { pathname } = new URL(direct)
  await administer(direct, `ALTER DATABASE ${pathname.slice(1)} SET statement_timeout = '10s'`)
  const url = await pool(direct, [IGNORING])
  const database = await openDatabase({ url }, () => undefined)
  onTestFinished(() => database.close())
  expect(database.pooled).toBe(true)
})

// A pooler that was paused, or restarted, while a sidecar started.
test.skipIf(!installed)(
  'a pooler that does not answer the first question is not taken for a server',
  async () => {
    const wire = await Wire.to(await pool(await createDatabase(), [IGNORING]))
    let connections = 0
    wire.onRequest = () => (connections++ === 0 ? 'cut' : 'pass')
    await expect(openDatabase({ url: wire.url }, () => undefined)).rejects.toMatchObject({
      kind: 'unreachable',
    })
  },
)
