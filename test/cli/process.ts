import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { programOf, programUnderTest } from '../support/build.ts'

export interface Ended {
  code: number | null
  out: string
  err: string
}

export interface Running {
  process: ChildProcessByStdio<null, Readable, Readable>
  /** What was written so far. */
  readonly out: string
  readonly err: string
  ended: Promise<Ended>
}

/** Starts the program as a person would, with an environment of its own. */
export function start(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; fromSource?: boolean } = {},
): Running {
  const { main } = options.fromSource === true ? programOf('source') : programUnderTest()
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env['PATH'], ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  const written = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.err += text
  })
  return {
    process: child,
    get out() {
      return written.out
    },
    get err() {
      return written.err
    },
    ended: new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, ...written }))
    }),
  }
}

/** Runs the program to its end. */
export function cli(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  return start(args, { env }).ended
}
