import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startEmulator, type Emulator } from '../../src/emulator/index.ts'
import { openDatabase as connectTo } from '../../src/sidecar/store/postgres/database.ts'
import { knownVersion, migrate } from '../../src/sidecar/store/postgres/schema.ts'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { folderWith } from '../config/folder.ts'
import { CERTIFICATE } from '../support/certificate.ts'
import { some } from '../support/full.ts'
import { freePort } from '../support/listen.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { administer, openDatabase, PostgresServer } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { start, type Ended } from './process.ts'

/** The errors of the first minutes with a database, each caused on purpose at a real server: cause and fix in two lines. */

const SECRET = 'the-password-of-app'
let server: PostgresServer
let emulator: Emulator
let plainServer: PostgresServer
let admin: Client

beforeAll(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sidecar-postgres-tls-'))
  chmodSync(folder, 0o755)
  const files = {
    'pg_hba.conf': [
      'local all all trust',
      'host all postgres 127.0.0.1/32 trust',
      'hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca',
      'hostssl all encrypted 127.0.0.1/32 trust',
      'hostnossl all encrypted 127.0.0.1/32 reject',
      'host all all 127.0.0.1/32 scram-sha-256',
    ].join('\n'),
    cert: CERTIFICATE.cert,
    key: CERTIFICATE.key,
  }
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name)
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    if (process.getuid?.() === 0) chownSync(file, 65_534, 65_534)
  }
  server = await PostgresServer.start([
    'fsync=off',
    `hba_file=${folder}/pg_hba.conf`,
    'ssl=on',
    `ssl_cert_file=${folder}/cert`,
    `ssl_key_file=${folder}/key`,
    `ssl_ca_file=${folder}/cert`,
  ])
  plainServer = await PostgresServer.start()
  emulator = await startEmulator()
  admin = new Client({ connectionString: server.url() })
  await admin.connect()
  for (const statement of [
    `CREATE ROLE app LOGIN PASSWORD '${SECRET}'`,
    `CREATE ROLE encrypted LOGIN PASSWORD '${SECRET}'`,
    'CREATE ROLE certified LOGIN',
    'CREATE DATABASE certified OWNER certified',
    `CREATE ROLE rotated LOGIN PASSWORD '${SECRET}'`,
    'CREATE DATABASE rotated OWNER rotated',
    'CREATE DATABASE app OWNER app',
    'CREATE DATABASE old',
    'ALTER DATABASE old SET search_path = fake, pg_catalog, public',
    "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    'CREATE DATABASE foreign_one',
    'CREATE DATABASE newer',
    'CREATE DATABASE held',
    'CREATE DATABASE frozen',
    'ALTER DATABASE frozen SET default_transaction_read_only = on',
  ])
    await admin.query(statement)
})
afterAll(async () => {
  await admin.end()
  await emulator.close()
  await server.stop()
  await plainServer.stop()
})

const ports = () => ({ clock: systemClock(), log: keepingLog(), random: systemRandom() })

interface Given {
  url?: string
  env?: Record<string, string>
  store?: string
}

async function call(args: string[], { url, env = {}, store = '' }: Given): Promise<Ended> {
  const cwd = await folderWith({
    'sidecar.yaml': [
      `service: { base_url: "${emulator.baseUrl}", token: ${emulator.token} }`,
      'admin: { listen: "127.0.0.1:0" }',
      ...(url === undefined ? [] : [`store: { url: "${url}"${store} }`]),
    ].join('\n'),
    password: `${SECRET}\n`,
    wrong: 'another-password\n',
    'ca.pem': CERTIFICATE.cert,
    'client.key': CERTIFICATE.key,
  })
  return await start([...args, '-c', 'sidecar.yaml'], { cwd, env }).ended
}

/** The lines for people, without the log. */
const linesOf = ({ err }: Ended): string[] =>
  err.split('\n').filter((line) => line !== '' && !line.startsWith('{'))

const at = (user: string, database: string, { port } = server): string =>
  `postgres://${user}@127.0.0.1:${port}/${database}`

/** The address for `app` of a store that another user owns. */
async function givenStore(grants: string): Promise<string> {
  const name = `given_${randomBytes(4).toString('hex')}`
  await admin.query(`CREATE DATABASE ${name}`)
  await (await openPostgresStore({ ...ports(), database: { url: server.url(name) } })).close()
  if (grants !== '') await administer(server.url(name), grants)
  return at('app', name)
}

const CASES: readonly [string, () => Given | Promise<Given>, string, string][] = [
  [
    'no server answers',
    async () => ({ url: `postgres://app@127.0.0.1:${await freePort()}/app` }),
    'store: no PostgreSQL answers at 127.0.0.1:',
    'start the server, or correct store.url or PGHOST and PGPORT',
  ],
  [
    'the host is not known',
    () => ({ url: 'postgres://app@nowhere.invalid/app?sslmode=verify-full' }),
    'store: no PostgreSQL answers at nowhere.invalid:5432 (E',
    'start the server, or correct store.url or PGHOST and PGPORT',
  ],
  [
    'the password is missing',
    () => ({ url: at('app', 'app') }),
    'asks for a password of the user app',
    'set store.password_file, or PGPASSWORD',
  ],
  [
    'the password is wrong',
    () => ({ url: at('app', 'app'), store: ', password_file: wrong' }),
    'refuses the password of the user app',
    'correct the password in store.password_file or PGPASSWORD',
  ],
  [
    'the database is missing',
    () => ({ url: at('postgres', 'nowhere') }),
    'there is no database nowhere at 127.0.0.1:',
    'correct its name, or create it: CREATE DATABASE "nowhere" OWNER "postgres"',
  ],
  [
    'the user may not create tables',
    () => ({ url: at('app', 'foreign_one'), store: ', password_file: password' }),
    '',
    'GRANT CREATE ON DATABASE',
  ],
  [
    'the user may only read the tables',
    async () => ({
      url: await givenStore(
        'GRANT USAGE ON SCHEMA sidecar TO app; GRANT SELECT ON ALL TABLES IN SCHEMA sidecar TO app',
      ),
      store: ', password_file: password',
    }),
    '',
    'GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA sidecar TO "app"',
  ],
  [
    'the user has no right to the schema',
    async () => ({ url: await givenStore(''), store: ', password_file: password' }),
    '',
    'as the owner of the schema: GRANT USAGE ON SCHEMA sidecar TO "app"',
  ],
  [
    'the server lets only encrypted connections in',
    () => ({ url: at('encrypted', 'app') }),
    'store: the server accepts only encrypted connections',
    'add ?sslmode=verify-full to store.url',
  ],
  [
    'the server has no TLS',
    () => ({ url: `${at('postgres', 'postgres', plainServer)}?sslmode=require` }),
    'store: the server has no TLS, but store.url or PGSSLMODE requires it',
    'turn ssl on in postgresql.conf, or set sslmode=disable',
  ],
  [
    'the authority of the server is not trusted',
    () => ({ url: `${at('encrypted', 'app')}?sslmode=verify-full` }),
    "store: this machine does not trust the authority of the server's certificate",
    'add sslrootcert=FILE, with the certificate of the authority, to store.url',
  ],
  [
    'the server is too old',
    async () => {
      const client = new Client({ connectionString: server.url('old') })
      await client.connect()
      await client.query(
        `CREATE SCHEMA fake; CREATE FUNCTION fake.current_setting(name text) RETURNS text LANGUAGE sql AS $$
           SELECT CASE name WHEN 'server_version_num' THEN '130018' WHEN 'server_version' THEN '13.18'
             ELSE pg_catalog.current_setting(name) END $$`,
      )
      await client.end()
      return { url: at('postgres', 'old') }
    },
    'store: PostgreSQL 13.18 at 127.0.0.1:',
    'use PostgreSQL 14 or newer',
  ],
  [
    'the database cannot hold every character',
    () => ({ url: at('postgres', 'latin') }),
    'store: the database latin at 127.0.0.1:',
    `OWNER "postgres" ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`,
  ],
  [
    'the server asks for a client certificate',
    () => ({ url: `${at('certified', 'certified')}?sslmode=require` }),
    'store: the server asks for a client certificate',
    'add sslcert=FILE and sslkey=FILE to store.url',
  ],
  [
    'the store is newer',
    async () => {
      const client = new Client({ connectionString: server.url('newer') })
      await client.connect()
      await client.query(
        'CREATE SCHEMA sidecar; CREATE TABLE sidecar.schema_versions (version int PRIMARY KEY); INSERT INTO sidecar.schema_versions VALUES (999);' +
          'CREATE TABLE sidecar.replicas (until timestamptz, fenced boolean)',
      )
      await client.end()
      return { url: at('postgres', 'newer') }
    },
    '999',
    'run ',
  ],
]

describe.each(some(CASES))('when %s', (name, given, cause, fix) => {
  test('run and check say so, and how to fix it', async () => {
    const prepared = await given()
    const [ran, checked] = await Promise.all([call(['run'], prepared), call(['check'], prepared)])
    if (process.env['SHOW'] !== undefined)
      console.log(
        `${name}\n${linesOf(ran).join('\n')}\n${checked.out.split('\n').find((line) => line.includes(' store '))}`,
      )
    const lines = linesOf(ran)
    expect({ code: ran.code, lines: lines.length }).toEqual({ code: 1, lines: 2 })
    expect(lines[0]).toMatch(/^error: store: /)
    expect(lines[0]).toContain(cause)
    expect(lines[1]).toMatch(/^ {2}fix: /)
    expect(lines[1]).toContain(fix)
    expect(checked.code).toBe(1)
    const said = checked.out.split('\n').find((line) => line.includes('✗ store')) ?? ''
    expect(said).toContain(cause.replace(/^store: /, ''))
    expect(said).toContain(fix)
    for (const text of [ran.err, checked.out, checked.err])
      expect(text).not.toMatch(/the-password|another-password/)
  })
})

test.each([
  ['has the schema and may make none', 'ALTER SCHEMA sidecar OWNER TO app'],
  [
    'only writes rows of a store that exists',
    `GRANT USAGE ON SCHEMA sidecar TO app;
     GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA sidecar TO app;
     GRANT USAGE ON ALL SEQUENCES IN SCHEMA sidecar TO app`,
  ],
])('a user that %s works with the store', async (_name, grant) => {
  const name = `given_${randomBytes(4).toString('hex')}`
  await admin.query(`CREATE DATABASE ${name}`)
  const [one, ...more] = grant.split(';')
  const owner = new Client({ connectionString: server.url(name) })
  await owner.connect()
  if (more.length === 0) await owner.query('CREATE SCHEMA sidecar')
  else await (await openPostgresStore({ ...ports(), database: { url: server.url(name) } })).close()
  for (const statement of [one ?? '', ...more]) await owner.query(statement)
  await owner.end()
  for (const seq of [1, 2]) {
    const database = { url: at('app', name), password: () => SECRET }
    const store = await openPostgresStore({ ...ports(), database })
    await store.shards.join()
    expect((await store.log.commit({ facts: [frameFact(seq)] })).facts).toHaveLength(1)
    await store.close()
  }
})

test('a standby of the server, which takes no writes, is refused with the way to the primary', async () => {
  const standby = await PostgresServer.start()
  try {
    const client = new Client({ connectionString: standby.url() })
    await client.connect()
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
    await client.end()
    await standby.kill()
    const signal = path.join(rows[0]?.data_directory ?? '', 'standby.signal')
    writeFileSync(signal, '')
    if (process.getuid?.() === 0) chownSync(signal, 65_534, 65_534)
    await standby.run()
    const url = at('postgres', 'postgres', standby)
    const [ran, checked] = await Promise.all([call(['run'], { url }), call(['check'], { url })])
    expect(linesOf(ran)).toEqual([
      `error: store: the server at 127.0.0.1:${standby.port} is a standby, which accepts no writes`,
      '  fix: name the primary in store.url, or an address that leads to it',
    ])
    expect(checked.out).toContain('is a standby, which accepts no writes')
  } finally {
    await standby.stop()
  }
})

test('PG variables complete the address, and TLS is checked against the given authority', async () => {
  const env = {
    PGHOST: 'localhost',
    PGPORT: String(server.port),
    PGUSER: 'app',
    PGDATABASE: 'app',
    PGPASSWORD: SECRET,
    PGSSLMODE: 'verify-full',
    PGSSLROOTCERT: 'ca.pem',
  }
  const { out, code } = await call(['check'], { url: 'postgres://', env })
  expect(out).toContain(
    `PostgreSQL 18.4, postgres://app@localhost:${server.port}/app, no store yet: the first start makes it`,
  )
  expect({ code }).toEqual({ code: 0 })
})

test('a second sidecar works beside the first, and continues when the first ends', async () => {
  const url = at('postgres', 'held')
  const [firstPort, secondPort] = [await freePort(), await freePort()]
  const cwd = await folderWith({
    'sidecar.yaml': [
      `service: { base_url: "${emulator.baseUrl}", token: ${emulator.token} }`,
      `store: { url: "${url}" }`,
      'log: { format: json }',
    ].join('\n'),
  })
  const run = (port: number) =>
    start(['run', '-c', 'sidecar.yaml'], { cwd, env: { SIDECAR_ADMIN__LISTEN: `127.0.0.1:${port}` } })
  const probe = async (port: number, name: string): Promise<number> =>
    await fetch(`http://127.0.0.1:${port}/${name}`).then(
      ({ status }) => status,
      () => 0,
    )
  const first = run(firstPort)
  await until('the first is ready', async () => (await probe(firstPort, 'readyz')) === 200)
  const second = run(secondPort)
  await until('the second is ready', async () => (await probe(secondPort, 'readyz')) === 200)
  const checked = await start(['check', '-c', 'sidecar.yaml'], { cwd }).ended
  expect(checked.out).toContain(`schema ${knownVersion()}, in use by a sidecar`)
  first.process.kill('SIGTERM')
  expect(await first.ended).toMatchObject({ code: 0 })
  expect(await probe(secondPort, 'readyz')).toBe(200)
  second.process.kill('SIGTERM')
  expect(await second.ended).toMatchObject({ code: 0 })
})

test('a server at an IPv6 address is found', async ({ skip }) => {
  const near = createServer((socket) => {
    const far = connect(server.port, '127.0.0.1')
    for (const end of [socket, far]) end.on('error', () => undefined)
    socket.pipe(far).pipe(socket)
  })
  near.listen(0, '::1')
  await once(near, 'listening').catch(() => skip('this machine has no IPv6'))
  const { port } = near.address() as AddressInfo
  const checked = await call(['check'], { url: `postgres://postgres@[::1]:${port}/postgres` })
  near.close()
  expect(checked.out).toContain('no store yet: the first start makes it')
})

test('a client certificate lets a user in', async () => {
  const url = `${at('certified', 'certified')}?sslmode=require&sslcert=ca.pem&sslkey=client.key`
  expect((await call(['check'], { url })).out).toContain('no store yet: the first start makes it')
})

test('a store takes the new password at its next connections', async () => {
  let password = SECRET
  const store = await openPostgresStore({
    ...ports(),
    database: { url: at('rotated', 'rotated'), password: () => password },
  })
  try {
    await store.log.commit({ facts: [frameFact(1)] })
    password = 'the-next-password'
    await admin.query(`ALTER ROLE rotated PASSWORD '${password}'`)
    await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'")
    await until('a commit', () =>
      store.log.commit({ facts: [frameFact(2)] }).then(
        () => true,
        () => false,
      ),
    )
    expect((await store.read.facts({ limit: 9, order: 'asc' })).rows).toHaveLength(2)
  } finally {
    await store.close()
  }
})

test('three processes that start at once make the tables once', async () => {
  const { url, drop } = await openDatabase()
  const begin = async (): Promise<void> => {
    const database = await connectTo({ url }, () => undefined)
    await migrate(database)
    await database.close()
  }
  await Promise.all([begin(), begin(), begin()])
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('SELECT version FROM sidecar.schema_versions ORDER BY version')
  expect(rows).toEqual(Array.from({ length: knownVersion() }, (_, index) => ({ version: index + 1 })))
  await client.end()
  await drop()
})

test('without the package pg the error names the command that installs it', async () => {
  const hook =
    'import { registerHooks } from "node:module"; registerHooks({ resolve(name, context, next) { if (name === "pg") ' +
    'throw Object.assign(new Error("no pg"), { code: "ERR_MODULE_NOT_FOUND" }); return next(name, context) } })'
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` }
  const ran = await call(['run'], { url: at('app', 'app'), env })
  expect({ code: ran.code, lines: linesOf(ran) }).toEqual({
    code: 2,
    lines: [
      'error: store.url: a store in PostgreSQL needs the package pg, which is not installed',
      '  fix: run: npm install pg',
    ],
  })
})

test('commands of a file say what to use for a database; the check reads it', async () => {
  const url = at('app', 'app')
  const given = { url, store: ', password_file: password' }
  const backup = await call(['store', 'backup', 'copy.db'], given)
  expect(linesOf(backup)).toEqual([
    `error: store backup: ${url} is a database of PostgreSQL`,
    '  fix: pg_dump --format=custom --schema=sidecar --file=FILE DATABASE',
  ])
  const restored = await call(['store', 'restore', 'copy.db'], given)
  expect(linesOf(restored)[0]).toBe(`error: store restore: ${url} is a database of PostgreSQL`)
  const empty = await call(['store', 'check'], given)
  expect(linesOf(empty)).toEqual([`error: store: there is no store in ${url}`])
  const printed = await call(['config', 'print'], { ...given, store: `, password: ${SECRET}` })
  expect(printed.out).toContain(url)
  expect(printed.out).not.toContain(SECRET)
  expect(existsSync('copy.db')).toBe(false)
})
