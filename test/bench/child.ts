import { fork, type ChildProcess } from 'node:child_process'
import path from 'node:path'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { isReply } from './process/serve.ts'

/** Milliseconds for a process to start, and for an answer of one that is asked nothing long. */
const PATIENCE = 30_000

interface Asked {
  resolve: (value: unknown) => void
  reject: (error: Error) => void
}

/** A process of the bench's own that is asked things; see process/serve.ts for the other side. */
export class Child implements AsyncDisposable {
  readonly #name: string
  readonly #process: ChildProcess
  readonly #asked = new Map<number, Asked>()
  readonly #exited: Promise<void>
  #questions = 0

  private constructor(name: string) {
    this.#name = name
    this.#process = fork(path.join(import.meta.dirname, 'process', `${name}.ts`), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    this.#process.on('message', (message) => this.#take(message))
    this.#exited = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => {
        for (const { reject } of this.#asked.values())
          reject(new Error(`the process ${name} ended with ${code ?? signal}`))
        this.#asked.clear()
        resolve()
      })
    })
  }

  /** Starts `process/<name>.ts`. */
  static async fork(name: string): Promise<Child> {
    const child = new Child(name)
    await child.do('ready')
    return child
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  async do(method: string, argument?: unknown, patience = PATIENCE): Promise<void> {
    await this.#ask(method, argument, patience)
  }

  /** @throws {Error} when there is no answer in time, or none of this shape. */
  async ask<T extends TSchema>(
    method: string,
    shape: T,
    argument?: unknown,
    patience = PATIENCE,
  ): Promise<Static<T>> {
    return Value.Parse(shape, await this.#ask(method, argument, patience))
  }

  #ask(method: string, argument: unknown, patience: number): Promise<unknown> {
    const number = ++this.#questions
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#asked.delete(number)
        reject(new Error(`${this.#name}: no answer to "${method}" within ${patience / 1000} s`))
      }, patience)
      this.#asked.set(number, {
        resolve: (value) => {
          clearTimeout(timer)
          resolve(value)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.#process.send({ number, method, argument })
    })
  }

  #take(message: unknown): void {
    if (!isReply(message)) throw new Error(`${this.#name} sent what is no reply`)
    const asked = this.#asked.get(message.number)
    this.#asked.delete(message.number)
    if (message.fault === undefined) asked?.resolve(message.value)
    else asked?.reject(new Error(`${this.#name}: ${message.fault}`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }
}
