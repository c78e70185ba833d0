import { spawn, type ChildProcess } from 'node:child_process'
import path from 'node:path'
import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { programUnderTest } from '../support/build.ts'
import { FULL } from '../support/full.ts'
import { freePort } from '../support/listen.ts'
import { administer, PostgresServer } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { command, documents, ROOT } from './documents.ts'
import { createSession, settledIn } from './session.ts'

interface Compose {
  services: Record<
    string,
    {
      command?: string[]
      environment?: Record<string, string>
      volumes?: string[]
      build?: string
      image: string
      pull_policy?: string
      read_only?: boolean
    }
  >
}

const [single] = documents<Compose>('config/compose.yaml')
const [replicas] = documents<Compose>('config/compose-replicas.yaml')

test.each([
  ['compose.yaml', single],
  ['compose-replicas.yaml', replicas],
])('the image of the sidecar is built once, and never pulled: %s', (_, compose) => {
  const ours = Object.values(compose?.services ?? {}).filter(({ image }) => image.startsWith('agent-session'))
  expect(ours.map(({ build, pull_policy: pull }) => [build, pull])).toEqual([
    [undefined, 'never'],
    ['..', undefined],
  ])
})

interface Running {
  child: ChildProcess
  output(): string
}

/** The services of a compose file, each started as its container would be, on loopback and with ports of ours. */
class Project implements AsyncDisposable {
  readonly #compose: Compose
  readonly #folder: string
  /** By the ports of the file. */
  readonly #ports: Record<string, number>
  readonly #running: Running[] = []

  private constructor(compose: Compose, folder: string, ports: Record<string, number>) {
    this.#compose = compose
    this.#folder = folder
    this.#ports = ports
  }

  /** With its service. `more`: further ports. */
  static async open(compose: Compose | undefined, more: Record<string, number> = {}): Promise<Project> {
    if (compose === undefined) throw new Error('the file is empty')
    const ports = { '4010': await freePort(), '3000': await freePort(), ...more }
    const project = new Project(compose, await folderWith({}), ports)
    project.start('service')
    return project
  }

  /** `admin`: the port of the admin API in place of the file's. */
  start(name: string, admin?: number): Running {
    const service = this.#compose.services[name]
    if (service === undefined) throw new Error(`there is no service ${name}`)
    const ports = { ...this.#ports, ...(admin === undefined ? {} : { '8481': admin }) }
    const here = (text: string): string =>
      Object.entries(ports)
        .reduce((moved, [port, other]) => moved.replaceAll(port, String(other)), text)
        .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
        .replaceAll(/\b(service|app|database|0\.0\.0\.0):(?=\d)/g, '127.0.0.1:')
    const folders: Record<string, string> = {
      'dist/main.js': programUnderTest().main,
      '/etc/sidecar/sidecar.yaml': path.join(ROOT, 'config/compose/sidecar.yaml'),
      '/app/app.mjs': path.join(ROOT, 'config/compose/app.mjs'),
    }
    const [program = '', ...args] = (service.command ?? command()).map((word) => folders[word] ?? here(word))
    const env = Object.entries(service.environment ?? {}).map(([key, value]) => [key, here(value)])
    const child = spawn(program, args, {
      cwd: this.#folder,
      // As in the image, the store is not beside the configuration: here it would be left in the repository.
      env: {
        PATH: process.env['PATH'],
        SIDECAR_STORE_BASE: this.#folder,
        ...(Object.fromEntries(env) as Record<string, string>),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const running = { child, output: () => output }
    this.#running.push(running)
    return running
  }

  /** A sidecar may be there before the service. Waits until that and each of these sidecars, by its admin port, has started. */
  async started(sidecars: ReadonlyMap<number, Running>): Promise<void> {
    const urls = [`http://127.0.0.1:${this.#ports['4010']}/v1/openapi.json`]
    for (const port of sidecars.keys()) urls.push(`http://127.0.0.1:${port}/startupz`)
    for (const url of urls)
      await until(url, async () => (await statusOf(url)) === 200, 30_000).catch((error: unknown) => {
        throw new Error([String(error), ...[...sidecars.values()].map(({ output }) => output())].join('\n'))
      })
  }

  createSession(): Promise<void> {
    return createSession(this.#ports['4010'])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map(({ child }) => killed(child)))
  }
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGKILL')
  await ended
}

async function statusOf(url: string): Promise<number | undefined> {
  const answer = await request(url).catch(() => null)
  await answer?.body.dump()
  return answer?.statusCode
}

test('the composed services work together: an event is taken, a tool answers', async () => {
  await using project = await Project.open(single)
  const app = project.start('app')
  const port = await freePort()
  await project.started(new Map([[port, project.start('sidecar', port)]]))
  await project.createSession()
  await until('event', () => settledIn(app.output()) > 0, 20_000)
  expect(app.output()).toMatch(/^tool lookup_order /m)
  // Off loopback the API wants the token that the file sets.
  expect(await statusOf(`http://127.0.0.1:${port}/api/status`)).toBe(401)
})

test.runIf(FULL)(
  'the composed replicas share their database: the leader is killed, and the others go on',
  async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.stop())
    // What the image of the database does with its variables: a superuser, and a database of the same name.
    const { POSTGRES_USER: user, POSTGRES_PASSWORD: password } =
      replicas?.services['database']?.environment ?? {}
    await administer(server.url(), `CREATE ROLE ${user} SUPERUSER LOGIN`)
    await administer(server.url(), `CREATE DATABASE ${user} OWNER ${user}`)
    expect(replicas?.services['sidecar']?.environment?.['SIDECAR_STORE__PASSWORD']).toBe(password)
    await using project = await Project.open(replicas, { '5432': server.port })
    const app = project.start('app')
    const sidecars = new Map<number, Running>()
    for (let count = 0; count < 3; count++) {
      const port = await freePort()
      sidecars.set(port, project.start('sidecar', port))
    }
    await project.started(sidecars)
    await project.createSession()
    await until('event', () => settledIn(app.output()) === 1, 20_000)
    const leaders = [...sidecars.values()].filter(({ output }) => output().includes('stream: connected'))
    expect(leaders).toHaveLength(1)
    for (const { child } of leaders) await killed(child)
    await project.createSession()
    await until('event after the takeover', () => settledIn(app.output()) === 2, 60_000)
    expect(app.output().match(/^tool lookup_order /gm)).toHaveLength(2)
  },
)

test('containers that are ours write only in their volume', () => {
  const sidecar = single?.services['sidecar']
  expect(sidecar?.read_only).toBe(true)
  expect(sidecar?.volumes).toEqual(['data:/app/data', './compose:/etc/sidecar:ro'])
  const replica = replicas?.services['sidecar']
  expect(replica?.read_only).toBe(true)
  expect(replica?.volumes).toEqual(['./compose:/etc/sidecar:ro'])
})
