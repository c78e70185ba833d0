import { spawn, spawnSync } from 'node:child_process'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { FULL } from '../support/full.ts'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { createSession, settledIn } from './session.ts'
import { ROOT, text } from './documents.ts'

/** The build of the image, with two installs from a slow mirror, is the longest. Milliseconds. */
const STEP = 600_000

const hasEngine =
  FULL && ['info', 'compose version'].every((words) => spawnSync('docker', words.split(' ')).status === 0)
if (FULL && !hasEngine)
  process.stderr.write('deployment: compose is NOT run: that needs a Docker engine and Docker Compose 2\n')

/** The containers of a compose file, with ports that are free here. */
class Project implements AsyncDisposable {
  readonly ports: Readonly<Record<string, number>>
  readonly #name: string
  readonly #document: string

  private constructor(name: string, document: string, ports: Readonly<Record<string, number>>) {
    this.#name = name
    this.#document = document
    this.ports = ports
  }

  static async start(file: string): Promise<Project> {
    const ports: Record<string, number> = { '4010': await freePort(), '8481': await freePort() }
    const document = text(`config/${file}`)
      .replace(/^name: .*\n/m, '')
      .replace("'127.0.0.1:4010:4010'", `'127.0.0.1:${ports['4010']}:4010'`)
      .replace("'127.0.0.1:8481:8481'", `'127.0.0.1:${ports['8481']}:8481'`)
      .replace("'127.0.0.1:8481-8483:8481'", "'127.0.0.1::8481'")
    const project = new Project(`engine-test-${process.pid}`, document, ports)
    try {
      await project.compose('up', '--build', '--detach')
    } catch (error) {
      await project[Symbol.asyncDispose]()
      throw error
    }
    return project
  }

  /** Runs `docker compose`. @returns what it printed. */
  compose(...words: readonly string[]): Promise<string> {
    const args = [
      'compose',
      '--file',
      '-',
      '--project-directory',
      path.join(ROOT, 'config'),
      '--project-name',
      this.#name,
    ]
    return run('docker', [...args, ...words], this.#document)
  }

  async kill(service: string, index: number): Promise<void> {
    await run('docker', ['kill', `${this.#name}-${service}-${index}`])
  }

  /** Waits until so many containers of a service pass their health check. */
  async healthy(service: string, count: number): Promise<void> {
    await until(
      `${count} healthy containers of ${service}`,
      async () => {
        const ids = (await this.compose('ps', '--quiet', service)).split('\n').filter((id) => id !== '')
        const states = await Promise.all(
          ids.map((id) => run('docker', ['inspect', '--format', '{{.State.Health.Status}}', id])),
        )
        return states.length === count && states.every((state) => state.trim() === 'healthy')
      },
      120_000,
    )
  }

  createSession(): Promise<void> {
    return createSession(this.ports['4010'])
  }

  /** Waits until the app has had the settled turns of so many sessions. @returns what it printed. */
  async settled(count: number): Promise<string> {
    let output = ''
    await until(
      `${count} settled turns`,
      async () => {
        output = await this.compose('logs', '--no-color', '--no-log-prefix', 'app')
        return settledIn(output) >= count
      },
      60_000,
    )
    return output
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.compose('down', '--volumes', '--timeout', '10')
  }
}

function run(program: string, args: readonly string[], input = ''): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: STEP })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
  // A program that ends before it has read everything: its exit code says more.
  child.stdin.on('error', () => undefined).end(input)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      // Compose writes control sequences at the beginning of each line of a log, a terminal or not.
      if (code === 0) resolve(stripVTControlCharacters(output))
      else reject(new Error(`${program} ${args.join(' ')} ended with ${code}: ${errors.slice(-4000)}`))
    })
  })
}

describe.skipIf(!hasEngine)('on a Docker engine', { timeout: STEP }, () => {
  test('compose.yaml builds the image and starts everything: the app has its event and its tool call', async () => {
    await using project = await Project.start('compose.yaml')
    await project.healthy('sidecar', 1)
    await project.createSession()
    expect(await project.settled(1)).toMatch(/^tool lookup_order /m)
    const status = await project.compose(
      'exec',
      '-T',
      'sidecar',
      'session-sidecar',
      'status',
      '-c',
      '/etc/sidecar/sidecar.yaml',
    )
    expect(status).toMatch(/stream +live/)
    // The volume keeps the store: after a restart the sidecar goes on behind the last event.
    await project.compose('restart', 'sidecar')
    await project.healthy('sidecar', 1)
    await project.createSession()
    const output = await project.settled(2)
    expect(output.match(/^event turn\.settled /gm)).toHaveLength(2)
  })

  test('compose-replicas.yaml starts three sidecars: one is killed, and the others go on', async () => {
    await using project = await Project.start('compose-replicas.yaml')
    await project.healthy('sidecar', 3)
    await project.createSession()
    await project.settled(1)
    const logs = await project.compose('logs', '--no-color', 'sidecar')
    const leader = Number(/^sidecar-(\d) .*stream: connected/m.exec(logs)?.[1])
    expect(leader).toBeGreaterThan(0)
    await project.kill('sidecar', leader)
    await project.createSession()
    const output = await project.settled(2)
    expect(output.match(/^tool lookup_order /gm)).toHaveLength(2)
    await project.healthy('sidecar', 2)
  })
})
