import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createSidecar, type ConfigInput, type Sidecar } from '../../src/index.ts'
import { programUnderTest } from './build.ts'
import { until } from './until.ts'

/** Two cores share a start with other tests. Milliseconds. */
const STARTUP = 20_000
/** A stop waits ten seconds for what is under way. Milliseconds. */
const STOPPING = 20_000

export interface LogLine {
  level: string
  message: string
  details: Record<string, unknown>
}

/** A sidecar under test, in this process or as a process of its own. */
export interface Program {
  /** Base address of the admin listener. */
  readonly admin: string
  readonly lines: LogLine[]
  readonly pid: number
  stop(): Promise<void>
  /** SIGKILL; only for a process. */
  kill(): Promise<void>
  /** The exit code; null: by a signal. Only for a process. */
  ended(): Promise<number | null>
}

export async function inProcess(
  config: ConfigInput,
  prepare: (sidecar: Sidecar) => void = () => undefined,
): Promise<Program> {
  const lines: LogLine[] = []
  const log = {
    debug: () => undefined,
    info: (details: object, message: string) =>
      void lines.push({ level: 'info', message, details: { ...details } }),
    warn: (details: object, message: string) =>
      void lines.push({ level: 'warn', message, details: { ...details } }),
    error: (details: object, message: string) =>
      void lines.push({ level: 'error', message, details: { ...details } }),
    child: () => log,
  }
  const sidecar = await createSidecar({ config, log })
  prepare(sidecar)
  await sidecar.start()
  const { admin } = sidecar.address
  if (admin === null) throw new Error('the admin listener has no address')
  return {
    admin: `http://127.0.0.1:${admin.port}`,
    lines,
    pid: process.pid,
    stop: () => sidecar.stop(),
    kill: () => Promise.reject(new Error('only a process can be killed')),
    ended: () => Promise.reject(new Error('only a process ends by itself')),
  }
}

export interface ProcessOptions {
  nodeOptions?: string
  /** In place of the program under test: another version of it. */
  main?: string
}

/** The real binary. Resolves once it says that it has started. */
export async function asProcess(
  config: ConfigInput,
  folder: string,
  { nodeOptions = '', main = programUnderTest().main }: ProcessOptions = {},
): Promise<Program> {
  const file = path.join(folder, 'sidecar.json')
  await writeFile(file, JSON.stringify({ ...config, log: { level: 'info', format: 'json' } }))
  const child = spawn(process.execPath, [main, 'run', '-c', file], {
    cwd: folder,
    env: { PATH: process.env['PATH'], NODE_OPTIONS: nodeOptions },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const lines: LogLine[] = []
  let rest = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) lines.push(lineOf(part))
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  const port = await until(
    'started sidecar',
    () => {
      if (child.exitCode !== null)
        throw new Error(`it exited with ${child.exitCode}:
${textOf(lines)}`)
      const address = lines.find(({ message }) => message === 'sidecar: started')?.details['admin']
      return (address as { port: number } | undefined)?.port
    },
    STARTUP,
  )
  return {
    admin: `http://127.0.0.1:${port}`,
    lines,
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGTERM')
      // One that hangs must not outlive its test.
      const late = setTimeout(() => child.kill('SIGKILL'), STOPPING)
      const code = await ended
      clearTimeout(late)
      if (child.signalCode === 'SIGKILL') throw new Error('it did not end on SIGTERM')
      if (code !== 0 && child.signalCode === null) throw new Error(`it exited with ${code} on SIGTERM`)
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    ended: () => ended,
  }
}

/** The last lines of a program that ended unasked. */
function textOf(lines: readonly LogLine[]): string {
  return lines
    .slice(-12)
    .map(({ message, details }) => `${message} ${JSON.stringify(details)}`)
    .join('\n')
}

const LEVELS: Readonly<Record<number, string>> = { 20: 'debug', 30: 'info', 40: 'warn', 50: 'error' }

function lineOf(text: string): LogLine {
  try {
    const { level, msg, ...details } = JSON.parse(text) as Record<string, unknown>
    return { level: LEVELS[Number(level)] ?? String(level), message: String(msg), details }
  } catch {
    return { level: 'plain', message: text, details: {} }
  }
}
