import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { Bench } from './scenario.ts'

/** Stores must be on a disk, which the folder for temporary files often is not. Git ignores it. */
export const DATA = path.join(import.meta.dirname, '../../data')

/** Folders and processes of the bench; all are gone when it is disposed of. */
export class Workbench implements Bench, AsyncDisposable {
  readonly root: string
  readonly settings: readonly string[]
  readonly #scale: number
  #stack = new AsyncDisposableStack()
  #folders = 0

  constructor(scale: number, settings: readonly string[] = []) {
    this.#scale = scale
    this.settings = settings
    mkdirSync(DATA, { recursive: true })
    this.root = mkdtempSync(path.join(DATA, 'bench-'))
    // Children end when their channel to us closes; what is left is the files.
    process.once('exit', () => rmSync(this.root, { recursive: true, force: true }))
  }

  folder(): string {
    const folder = path.join(this.root, String(++this.#folders))
    mkdirSync(folder)
    return folder
  }

  scaled(count: number): number {
    return Math.max(1, Math.round(count * this.#scale))
  }

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource)
  }

  /** Ends the processes of a scenario. */
  async clear(): Promise<void> {
    const stack = this.#stack
    this.#stack = new AsyncDisposableStack()
    await stack.disposeAsync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear()
    rmSync(this.root, { recursive: true, force: true })
  }
}
