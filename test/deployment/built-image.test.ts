import { spawnSync, type ChildProcess } from 'node:child_process'
import { chmod, chown, lstat, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { group, read } from '../readme/document.ts'
import { SECRET } from '../support/app.ts'
import { freePort } from '../support/listen.ts'
import { openDatabase } from '../support/postgres.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { canBuild, Images, type BuiltImage, type RunOptions } from './container.ts'
import { healthCheck, ROOT } from './documents.ts'

const TAG = 'agent-session-sidecar:0.1.0'
/** Debian's packages, two installs and a build: two minutes on a quiet machine and a fast mirror. Milliseconds. */
const BUILD = 1_200_000

interface Container {
  process: ChildProcess
  output: () => string
  /** Exit code, or the signal. */
  ended: Promise<number | string | null>
}

describe.skipIf(!canBuild)('the built image', () => {
  const stack = new AsyncDisposableStack()
  const containers: Container[] = []
  let image: BuiltImage

  beforeAll(async () => {
    const images = stack.use(await Images.open())
    image = await images.build(TAG)
  }, BUILD)
  afterEach(async () => {
    for (const { process, ended } of containers.splice(0)) {
      process.kill('SIGKILL')
      await ended
    }
  })
  afterAll(() => stack.disposeAsync())

  function start(options: RunOptions): Container {
    const process = image.run(options)
    let text = ''
    for (const stream of [process.stdout, process.stderr])
      stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    const ended = new Promise<number | string | null>((resolve) =>
      process.once('close', (code, signal) => resolve(code ?? signal)),
    )
    const container = { process, output: () => text, ended }
    containers.push(container)
    return container
  }

  /** Waits until the sidecar in a container is ready, with what it logged where it is not. */
  async function ready(container: Container, port: number): Promise<void> {
    const asked = until('200 of /readyz', async () => (await status(port, '/readyz')) === 200, 30_000)
    await Promise.race([
      asked,
      container.ended.then((code) => {
        throw new Error(`the container ended with ${code}: ${container.output()}`)
      }),
    ])
  }

  test('has the settings of the Dockerfile, and the size that config/README.md states', () => {
    expect(image.config).toMatchObject({
      User: '65532:65532',
      WorkingDir: '/app',
      ExposedPorts: { '8480/tcp': {}, '8481/tcp': {} },
      Healthcheck: { Test: ['CMD', ...healthCheck()] },
    })
    const [, stated = ''] = /adds (\d+) MB to `node:24-slim`/.exec(read('config/README.md')) ?? []
    const measured = image.bytes / 1e6
    console.log(`the image adds ${measured.toFixed(1)} MB to its base`)
    expect(
      Math.abs(measured - Number(stated)),
      `${measured} MB, and config/README.md says ${stated}`,
    ).toBeLessThan(5)
  })

  test('runs as 65532 on a root that it cannot write, delivers a callback, and ends well', async () => {
    await using rig = await Rig.open({ channels: ['stream', 'poll'], start: false })
    const folder = await scratch(stack)
    const data = path.join(folder, 'data')
    await mkdir(data, { mode: 0o700 })
    await chown(data, 65532, 65532)
    const port = await freePort()
    const { store: _, ...config } = rig.config
    await writeFile(
      path.join(folder, 'sidecar.yaml'),
      JSON.stringify({ ...config, admin: { listen: `127.0.0.1:${port}` }, log: { level: 'info' } }),
      { mode: 0o644 },
    )
    await chmod(folder, 0o755)
    const mounts = [
      { from: data, to: '/app/data', readOnly: false },
      { from: folder, to: '/etc/sidecar', readOnly: true },
    ]
    const outside = start({ mounts, command: ['sh', '-c', 'id -u; touch /app/here; touch /app/data/there'] })
    await outside.ended
    expect(outside.output()).toMatch(/^65532\n.*\/app\/here.*Read-only file system\n$/)

    const container = start({ mounts })
    await ready(container, port)
    const env = { SIDECAR_ADMIN__LISTEN: `127.0.0.1:${port}` }
    expect(await start({ mounts, env, command: healthCheck() }).ended).toBe(0)
    const operator = start({
      mounts,
      command: ['session-sidecar', 'status', '-c', '/etc/sidecar/sidecar.yaml'],
    })
    expect([await operator.ended, operator.output()]).toEqual([0, expect.stringContaining('stream')])
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    expect((await lstat(path.join(data, 'sidecar.db'))).uid).toBe(65532)
    container.process.kill('SIGTERM')
    expect([await container.ended, container.output()]).toEqual([0, expect.any(String)])
  })

  test('runs twice on one PostgreSQL, without a volume: one is killed, and the other goes on', async () => {
    const { url, drop } = await openDatabase()
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(drop)
    await using rig = await Rig.open({
      channels: ['stream', 'poll'],
      start: false,
      config: { store: { url } },
    })
    const folder = await scratch(cleanup)
    const { store: _, ...config } = rig.config
    await writeFile(
      path.join(folder, 'sidecar.yaml'),
      JSON.stringify({ ...config, log: { level: 'info' } }),
      {
        mode: 0o644,
      },
    )
    await chmod(folder, 0o755)
    const mounts = [{ from: folder, to: '/etc/sidecar', readOnly: true }]
    const replicas: Container[] = []
    for (let count = 0; count < 2; count++) {
      const port = await freePort()
      const env = { SIDECAR_ADMIN__LISTEN: `127.0.0.1:${port}`, SIDECAR_STORE__URL: url }
      const replica = start({ mounts, env })
      await ready(replica, port)
      replicas.push(replica)
    }
    const first = await rig.client.start('say Hello')
    await rig.event('turn.settled', ({ session_id }) => session_id === first)
    // The first one leads.
    expect(replicas.map(({ output }) => output().includes('stream: connected'))).toEqual([true, false])
    const [leader, other] = replicas
    leader?.process.kill('SIGKILL')
    await leader?.ended
    const second = await rig.client.start('say Hello')
    await rig.event('turn.settled', ({ session_id }) => session_id === second)
    other?.process.kill('SIGTERM')
    expect([await other?.ended, other?.output()]).toEqual([0, expect.any(String)])
  })

  test('runs by the documented command with the files of init, and shows the console', async () => {
    await using rig = await Rig.open({ channels: ['stream'], start: false })
    const folder = await scratch(stack)
    const init = spawnSync(
      process.execPath,
      [
        path.join(ROOT, 'src/main.js'),
        'init',
        'real/sidecar.yaml',
        '--base-url',
        rig.emulator.baseUrl,
        '--handler-url',
        rig.app.handlerUrl('app'),
      ],
      { cwd: folder, encoding: 'utf8' },
    )
    expect([init.status, init.stderr]).toEqual([0, ''])
    await writeFile(path.join(folder, 'real/callback-secret.txt'), SECRET)
    // The user of the command owns the files, and no other user can read their secrets.
    const [uid, gid] = [1234, 2345]
    for (const name of ['', 'real', 'real/sidecar.yaml', 'real/callback-secret.txt'])
      await chown(path.join(folder, name), uid, gid)
    const port = await freePort()
    const [build, ...commands] = documented(folder, { uid, gid, token: rig.token.token })
    expect(build).toEqual(['build', '-t', TAG, '.'])
    expect(commands).toHaveLength(1)
    const options = runOptions(commands[0] ?? [], { SERVICE_TOKEN: rig.token.token })
    await chown(path.join(folder, 'real/data'), uid, gid)
    const container = start({
      ...options,
      env: { ...options.env, SIDECAR_ADMIN__LISTEN: `127.0.0.1:${port}` },
    })
    await ready(container, port)
    expect(await status(port, '/')).toBe(200)
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    expect((await lstat(path.join(folder, 'real/data/sidecar.db'))).uid).toBe(uid)
    container.process.kill('SIGTERM')
    expect([await container.ended, container.output()]).toEqual([0, expect.any(String)])
  })
})

async function scratch(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'container-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function status(port: number, path: string): Promise<number | null> {
  const answer = await request(`http://127.0.0.1:${port}${path}`).catch(() => null)
  await answer?.body.dump()
  return answer?.statusCode ?? null
}

/** The words of each `docker` of the documents, as a shell gives them to it. */
function documented(cwd: string, who: { uid: number; gid: number; token: string }): string[][] {
  const [block] = group('docker')
  const script = [
    `docker() { printf '%s\\0' "$@"; printf '\\n'; }`,
    `id() { case "$1" in -u) echo ${who.uid} ;; -g) echo ${who.gid} ;; esac; }`,
    block?.text ?? 'exit 1',
  ].join('\n')
  const env = { PATH: process.env['PATH'], SERVICE_TOKEN: who.token }
  const { status: code, stdout } = spawnSync('bash', ['-ec', script], { cwd, env, encoding: 'utf8' })
  expect(code).toBe(0)
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\0').slice(0, -1))
}

/** What `docker run` makes of its words. @throws {Error} for one that this does not know. */
function runOptions(words: readonly string[], caller: Record<string, string>): RunOptions {
  const [run, ...rest] = words
  expect([run, rest.pop()]).toEqual(['run', TAG])
  const options = { mounts: [] as RunOptions['mounts'], env: {} as Record<string, string> }
  let user: string | undefined
  const given = new Set<string>()
  for (let option = rest.shift(); option !== undefined; option = rest.shift()) {
    given.add(option)
    if (option === '--rm' || option === '--read-only') continue
    const value = rest.shift() ?? ''
    if (option === '--user') user = value
    else if (option === '-e') options.env[value] = caller[value] ?? ''
    else if (option === '-v') {
      const [from = '', to = '', mode] = value.split(':')
      options.mounts.push({ from, to, readOnly: mode === 'ro' })
    } else if (!(option === '--network' && value === 'host') && option !== '--stop-timeout')
      throw new Error(`what does docker run do with ${option}?`)
  }
  expect([...given]).toEqual(expect.arrayContaining(['--read-only', '--network', '--stop-timeout']))
  return user === undefined ? options : { ...options, user }
}
