import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { ConfigInput } from '../../src/index.ts'

/** The program of this checkout. */
const MAIN = path.join(import.meta.dirname, '../../src/main.js')
/** Milliseconds for a start, which compiles the source, and for a stop. */
const PATIENCE = 30_000
/** Milliseconds after its start: its first look at the service is through. */
const CALM = 500
/** Lines of its log that are shown when it fails. */
const LINES_SHOWN = 15

const Address = Type.Object({ host: Type.String(), port: Type.Integer() })
const Started = Type.Object({
  msg: Type.Literal('sidecar: started'),
  admin: Address,
  webhooks: Type.Union([Address, Type.Null()]),
})

export interface Execution {
  nodeOptions?: readonly string[]
  /** Its file; by default the program of this checkout. */
  program?: string
}

/** The sidecar under measurement: the real binary in a process of its own, with a new database in `folder`. */
export class Subject implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<null, null, Readable>
  readonly #exited: Promise<number | string | null>
  readonly #log: string[] = []
  #started: Type.Static<typeof Started> | null = null

  private constructor(file: string, { nodeOptions = [], program = MAIN }: Execution) {
    this.#process = spawn(process.execPath, [...nodeOptions, program, 'run', '-c', file], {
      cwd: path.dirname(file),
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let rest = ''
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#read(line)
    })
    // It has no channel to us by whose closing it would end with us.
    const end = (): void => void this.#process.kill('SIGKILL')
    process.once('exit', end)
    this.#exited = new Promise((resolve) => {
      // A program that cannot be started has no exit either.
      this.#process.once('error', (error) => resolve(error.message))
      this.#process.once('close', (code, signal) => {
        process.off('exit', end)
        resolve(code ?? signal)
      })
    })
  }

  /** Starts it and waits until it has started. `config` needs no admin and log, and no store unless it is in PostgreSQL. */
  static async start(
    folder: string,
    config: Omit<ConfigInput, 'store' | 'admin' | 'log'> & { store?: { url: string } },
    execution: Execution = {},
  ): Promise<Subject> {
    mkdirSync(folder, { recursive: true })
    const file = path.join(folder, 'sidecar.json')
    const whole: ConfigInput = {
      ...config,
      // A store that is kept between runs keeps its facts.
      store: { url: 'sqlite:store.db', retention: '3650d', ...config.store },
      admin: { listen: '127.0.0.1:0' },
      log: { format: 'json' },
    }
    writeFileSync(file, JSON.stringify(whole))
    const subject = new Subject(file, execution)
    try {
      await subject.#ready()
      return subject
    } catch (error) {
      await subject[Symbol.asyncDispose]()
      throw error
    }
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  get adminUrl(): string {
    return `http://127.0.0.1:${this.#started?.admin.port}`
  }

  get webhookUrl(): string {
    return `http://127.0.0.1:${this.#started?.webhooks?.port}/webhooks`
  }

  /** One sample of its metrics, named as in the exposition but for the prefix. */
  async metric(sample: string): Promise<number> {
    const text = await this.#get('/metrics').then((reply) => reply.text())
    const line = text.split('\n').find((one) => one.startsWith(`session_sidecar_${sample} `))
    if (line === undefined) throw new Error(`there is no metric ${sample}`)
    return Number(line.slice(line.lastIndexOf(' ')))
  }

  /** @throws {Error} when it does not end well by itself. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    const code = await Promise.race([this.#exited, pause(PATIENCE, 'no exit', { ref: false })])
    if (code !== 0) throw this.#failure(`the sidecar ended with ${code}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  async #ready(): Promise<void> {
    const limit = performance.now() + PATIENCE
    while (performance.now() < limit) {
      if (this.#process.pid === undefined || this.#process.exitCode !== null)
        throw this.#failure(`the sidecar ended with ${this.#process.exitCode}`)
      if (this.#started !== null) return await pause(CALM)
      await pause(20)
    }
    throw this.#failure('the sidecar did not start in time')
  }

  #get(route: string): Promise<Response> {
    const signal = AbortSignal.timeout(PATIENCE)
    return fetch(this.adminUrl + route, { signal })
  }

  #read(line: string): void {
    this.#log.push(line)
    if (this.#log.length > LINES_SHOWN) this.#log.shift()
    if (this.#started !== null || !line.includes('sidecar: started')) return
    this.#started = Value.Parse(Started, JSON.parse(line))
  }

  #failure(what: string): Error {
    return new Error(`${what}; the end of its log:\n${this.#log.join('\n')}`)
  }
}
