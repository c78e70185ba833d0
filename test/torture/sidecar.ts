import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { request } from 'undici'
import type { Fields } from '../support/app.ts'

/** SIGTERM leaves the program so long, milliseconds (its own limit is 25 s). */
const GRACE = 30_000
/** A start may take so long on a machine that does much else, milliseconds. */
const STARTUP = 60_000

export interface Life {
  number: number
  pid: number
  /** Wall milliseconds. */
  from: number
  /** Of the SIGTERM that ends it; null: there was none. */
  stoppedAt: number | null
  until: number | null
  ready: boolean
  code: number | null
  signal: NodeJS.Signals | null
  /** Lines in which it said why it ends. */
  words: string[]
}

/** The line of the log when a process finds that it may never write again. The lines for people are not JSON. */
const LOST = '"store: it is lost'

/** The program, over all its lives on one store. */
export class Sidecar {
  readonly lives: Life[] = []
  readonly #command: readonly string[]
  readonly #folder: string
  readonly #admin: { url: string; token: string }
  #child: ChildProcess | null = null
  #ended: Promise<Life> = Promise.reject(new Error('it never lived'))
  #ready = Promise.withResolvers<boolean>()

  /** `command`: what Node is given, such as `['dist/main.js', 'run', '-c', 'sidecar.json']`. */
  constructor(command: readonly string[], folder: string, admin: { url: string; token: string }) {
    this.#command = command
    this.#folder = folder
    this.#admin = admin
    this.#ended.catch(() => undefined)
  }

  /** Whether one life lasted from before `from` until after `until`, wall milliseconds. */
  livedThrough(from: number, until: number): boolean {
    return this.lives.some((life) => life.from < from && (life.until ?? Infinity) > until)
  }

  get alive(): boolean {
    return this.#child !== null
  }

  get life(): Life {
    const life = this.lives.at(-1)
    if (life === undefined) throw new Error('it never lived')
    return life
  }

  /** Begins a life; it may end before it is ready. */
  start(): void {
    const child = spawn(process.execPath, [...this.#command], {
      cwd: this.#folder,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const life: Life = {
      number: this.lives.length + 1,
      pid: child.pid ?? 0,
      from: Date.now(),
      stoppedAt: null,
      until: null,
      ready: false,
      code: null,
      signal: null,
      words: [],
    }
    this.lives.push(life)
    this.#child = child
    // Nothing stays behind when the campaign is interrupted.
    const leave = (): void => void child.kill('SIGKILL')
    process.once('exit', leave)
    const ready = Promise.withResolvers<boolean>()
    this.#ready = ready
    const log = `${this.#folder}/sidecar.log`
    child.stderr.on('data', (bytes: Buffer) => {
      appendFileSync(log, bytes)
      if (life.ready || !bytes.includes('"sidecar: started"')) return
      life.ready = true
      ready.resolve(true)
    })
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (!line.startsWith('{') || line.includes(LOST)) life.words.push(line)
    })
    this.#ended = once(child, 'close').then(([code, signal]: unknown[]) => {
      process.off('exit', leave)
      life.until = Date.now()
      life.code = code as number | null
      life.signal = signal as NodeJS.Signals | null
      if (this.#child === child) this.#child = null
      ready.resolve(false)
      return life
    })
  }

  /** Resolves once this life has begun in earnest; false: it ended before. @throws {Error} after a minute. */
  async ready(): Promise<boolean> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error('the program does not get ready')), STARTUP)
    return await Promise.race([this.#ready.promise, late.promise]).finally(() => clearTimeout(timer))
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  /** Resolves when this life is over. */
  ended(): Promise<Life> {
    return this.#ended
  }

  async kill(): Promise<Life> {
    this.signal('SIGKILL')
    return await this.#ended
  }

  /** SIGTERM, `again` milliseconds later once more if given. @returns the life; null: it would not end. */
  async stop(again: number | null = null): Promise<Life | null> {
    this.signal('SIGTERM')
    this.life.stoppedAt ??= Date.now()
    const second = again === null ? undefined : setTimeout(() => this.signal('SIGTERM'), again)
    const late = Promise.withResolvers<null>()
    const timer = setTimeout(() => late.resolve(null), GRACE)
    const life = await Promise.race([this.#ended, late.promise])
    clearTimeout(timer)
    clearTimeout(second)
    return life
  }

  /** Asks the admin listener. @throws {Error} without an answer. */
  async ask(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
    const response = await request(this.#admin.url + path, {
      method: method as 'GET',
      reset: true,
      headersTimeout: 10_000,
      headers: {
        authorization: `Bearer ${this.#admin.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.statusCode, text: await response.body.text() }
  }

  /** All pages of a list of the admin API. */
  async list(path: string): Promise<Fields[]> {
    const rows: Fields[] = []
    let after = ''
    for (;;) {
      const { status, text } = await this.ask(
        'GET',
        `${path}${path.includes('?') ? '&' : '?'}limit=100${after}`,
      )
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
      const page = JSON.parse(text) as { data: Fields[]; has_more: boolean; last_id: string }
      rows.push(...page.data)
      if (!page.has_more) return rows
      after = `&after=${encodeURIComponent(page.last_id)}`
    }
  }
}
