import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { programUnderTest } from '../support/build.ts'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { ROOT, type Block } from './document.ts'

/** Milliseconds that a program may take to listen or to say what it should: two cores are shared with other tests. */
const PATIENCE = 20_000

/** Addresses that the README uses; each story has free ones in their place. */
const PORTS = ['3000', '4010', '8481'] as const

export interface Result {
  code: number | null
  out: string
  err: string
}

/**
 * Plays blocks of the README as they stand, in a folder of its own. Three things differ from what a reader does:
 * - the ports are free ones, in every text; what the programs default to is given by `--listen` and in the environment,
 * - `npm start --` is this repository's program, since the folder is another,
 * - the package's name leads to the bundle that the tests have made, as `npm install` would lead to it.
 */
export class Story {
  readonly folder: string
  readonly #ports: ReadonlyMap<string, number>
  readonly #running: { process: ChildProcess; output: () => string }[] = []

  private constructor(folder: string, ports: ReadonlyMap<string, number>) {
    this.folder = folder
    this.#ports = ports
  }

  static async begin(): Promise<Story> {
    const folder = await mkdtemp(path.join(tmpdir(), 'readme-'))
    const ports = new Map<string, number>()
    for (const port of PORTS) ports.set(port, await freePort())
    await install(folder)
    return new Story(folder, ports)
  }

  /** Saves, starts or runs a block. @throws {Error} when one that was run ended badly, or wrote of errors. */
  async play(block: Block): Promise<void> {
    const file = block.value('file')
    const port = block.value('start')
    if (file !== null) {
      await mkdir(path.dirname(path.join(this.folder, file)), { recursive: true })
      await writeFile(path.join(this.folder, file), this.#elsewhere(block.text))
    } else if (port !== null) await this.start(block.text, port)
    else if (block.words.includes('run')) {
      const { code, err } = await this.run(block.text)
      if (code !== 0 || err !== '') throw new Error(`ended with ${code}: ${block.text}${err}`)
    }
  }

  /** Starts a program, and waits until something listens at what the README calls `port`. */
  async start(command: string, port: string | null): Promise<() => string> {
    const { process, output, ended } = this.#spawn(`exec ${command}`)
    this.#running.push({ process, output })
    const end = { result: null as Result | null }
    void ended.then((result) => (end.result = result))
    if (port !== null) {
      await until(
        `a listener at ${port}`,
        () => {
          if (end.result !== null) throw new Error(`"${command.trim()}" ended: ${end.result.err}`)
          return listens(this.#ports.get(port) ?? 0)
        },
        PATIENCE,
      )
    }
    return output
  }

  run(command: string): Promise<Result> {
    return this.#spawn(`set -e\n${command}`).ended
  }

  /** Waits until the running programs have said these lines; ids (`evt_…`, `call_…`) may be any. */
  async says(lines: string): Promise<void> {
    const patterns = lines
      .trim()
      .split('\n')
      .map((line) => patternOf(line))
    await until(
      `"${lines.trim()}"`,
      () => {
        const said = this.#running.map(({ output }) => output()).join('\n')
        return patterns.every((pattern) => pattern.test(said)) || undefined
      },
      PATIENCE,
    )
  }

  /** Ends every program, as a person does with Ctrl-C. @returns how they ended. */
  async stop(): Promise<(number | string | null)[]> {
    return await Promise.all(this.#running.splice(0).toReversed().map(interrupt))
  }

  /** Ends every program and removes the folder. @returns how they ended. */
  async end(): Promise<(number | string | null)[]> {
    const codes = await this.stop()
    await rm(this.folder, { recursive: true, force: true })
    return codes
  }

  #elsewhere(text: string): string {
    let moved = text
    for (const [port, other] of this.#ports)
      moved = moved.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), String(other))
    return moved
  }

  #spawn(command: string): { process: ChildProcess; output: () => string; ended: Promise<Result> } {
    const admin = `127.0.0.1:${this.#ports.get('8481')}`
    const main = `node ${programUnderTest().main}`
    const text = this.#elsewhere(command)
      .replaceAll(
        'npm start -- emulate',
        `npm start -- emulate --listen 127.0.0.1:${this.#ports.get('4010')}`,
      )
      .replaceAll('npm start --', main)
    const child = spawn('bash', ['-c', text], {
      cwd: this.folder,
      env: {
        PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
        HOME: process.env['HOME'],
        SIDECAR_ADMIN__LISTEN: admin,
        SIDECAR_ADMIN_URL: `http://${admin}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const written = { out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (written.out += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (written.err += chunk))
    const ended = new Promise<Result>((resolve) =>
      child.once('close', (code) => resolve({ code, ...written })),
    )
    return { process: child, output: () => written.out, ended }
  }
}

async function interrupt({ process }: { process: ChildProcess }): Promise<number | string | null> {
  if (process.exitCode !== null) return process.exitCode
  const closed = new Promise<number | string | null>((resolve) =>
    process.once('close', (code, signal) => resolve(code ?? signal)),
  )
  process.kill('SIGINT')
  return await closed
}

async function listens(port: number): Promise<true | undefined> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(undefined))
  })
}

/** A line as the README shows it, with any ids. */
function patternOf(line: string): RegExp {
  const escaped = line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll(/(evt|call)_\S+/g, '$1_\\S+')}$`, 'm')
}

/** What `npm install` of the package and of zod would have made. */
async function install(folder: string): Promise<void> {
  const ours = path.join(folder, 'node_modules/agent-session-sidecar')
  await mkdir(ours, { recursive: true })
  const exports = { '.': './index.js', './client': './client.js', './emulator': './emulator.js' }
  await writeFile(path.join(ours, 'package.json'), JSON.stringify({ type: 'module', exports }))
  const built = path.dirname(programUnderTest().library)
  for (const [name, face] of [
    ['index.js', 'index'],
    ['client.js', 'client/index'],
    ['emulator.js', 'emulator/index'],
  ] as const) {
    const address = pathToFileURL(path.join(built, face + path.extname(programUnderTest().library))).href
    await writeFile(path.join(ours, name), `export * from '${address}'\n`)
  }
  await symlink(path.join(ROOT, 'node_modules/zod'), path.join(folder, 'node_modules/zod'))
}
