import { fork, type ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Rig, type RigOptions } from '../support/rig.ts'
import { until } from '../support/until.ts'
import type { End, Order, Report } from './recorder.ts'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const RECORDER = new URL('recorder.ts', import.meta.url).href

/** The real program, from source, in a process of its own with the recorder in it. */
export class Traveller implements AsyncDisposable {
  readonly rig: Rig
  readonly #process: ChildProcess
  readonly #reports: Report[] = []

  private constructor(rig: Rig, process: ChildProcess) {
    this.rig = rig
    this.#process = process
    process.on('message', (report: Report) => void this.#reports.push(report))
  }

  static async start(options: RigOptions): Promise<Traveller> {
    const rig = await Rig.open({ ...options, start: false })
    const file = path.join(rig.folder, 'sidecar.json')
    await writeFile(file, JSON.stringify({ ...rig.config, log: { level: 'info', format: 'json' } }))
    const child = fork(MAIN, ['run', '-c', file], {
      execArgv: ['--import', RECORDER],
      // Calls of functions that came from the cache of compiled code are not counted reliably.
      env: { PATH: process.env['PATH'], NODE_DISABLE_COMPILE_CACHE: '1' },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const traveller = new Traveller(rig, child)
    let log = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
    try {
      await until('started sidecar', () => {
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}:\n${log}`)
        return log.includes('sidecar: started')
      })
      if (rig.config.stream?.enabled === true)
        await until('open stream', () => rig.emulator.openStreams() > 0)
    } catch (error) {
      await traveller[Symbol.asyncDispose]()
      throw error
    }
    // A tool takes as long as what goes on beside it. A call after the last window has no report, and the test may be over.
    rig.app.run = async () => {
      await traveller.#report('waiting').catch(() => undefined)
      return { body: 'done' }
    }
    return traveller
  }

  /** Records one window, whose event `cause` causes. */
  async record(end: End, cause: () => unknown): Promise<Extract<Report, { recorded: unknown }>> {
    this.#order({ record: end, answerEnding: this.rig.client.answerEnding })
    await this.#report('armed')
    await cause()
    return await this.#report('recorded')
  }

  async trace(functions: readonly string[]): Promise<void> {
    this.#order({ trace: functions })
    await this.#report('tracing')
  }

  #order(order: Order): void {
    this.#process.send(order)
  }

  async #report<Kind extends string>(kind: Kind): Promise<Extract<Report, Record<Kind, unknown>>> {
    const is = (report: Report): report is Extract<Report, Record<Kind, unknown>> => kind in report
    return await until(`report that says "${kind}"`, () => {
      const fault = this.#reports.find((report) => 'fault' in report)
      if (fault !== undefined) throw new Error(fault.fault)
      const found = this.#reports.find(is)
      if (found !== undefined) this.#reports.splice(this.#reports.indexOf(found), 1)
      return found
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.rig[Symbol.asyncDispose]()
  }
}
