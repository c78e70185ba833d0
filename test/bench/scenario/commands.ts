import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Type } from 'typebox'
import { programOf } from '../../support/build.ts'
import { Child } from '../child.ts'
import { now } from '../clock.ts'
import { milliseconds, type Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { Subject } from '../subject.ts'

const WHOLE = 'command check, to its end'
const FILE = 'sidecar.yaml'
/** What people wait for most. `run` and `dev` go on; they are ended at their first line. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  help: ['--help'],
  'config print': ['config', 'print', '-c', FILE],
  check: ['check', '-c', FILE],
  status: ['status'],
  sessions: ['sessions'],
  run: ['run', '-c', FILE],
  dev: ['dev'],
}

const Address = Type.Object({ url: Type.String(), token: Type.String() })

const named = (command: string): string => `command ${command}`

/** From the start of a command of the built program to its first output; the baseline is a Node that prints a letter. */
export const commands: Scenario = {
  measures: [
    ...Object.keys(COMMANDS).map((command) => milliseconds(named(command), 150)),
    milliseconds(WHOLE, 5000),
  ],
  async open(bench) {
    const { main } = programOf('build')
    const emulator = bench.use(await Child.fork('emulator'))
    const { url, token } = await emulator.ask('address', Address)
    const service = { base_url: url, token }
    const subject = bench.use(await Subject.start(bench.folder(), { service }))
    const folder = bench.folder()
    writeFileSync(path.join(folder, FILE), JSON.stringify({ service, admin: { listen: '127.0.0.1:0' } }))
    const outputOf = (args: readonly string[]) => firstOutput([main, ...args], folder, subject.adminUrl)
    // The first start of all writes the cache of compiled code; what counts is every later one.
    for (const args of Object.values(COMMANDS)) await outputOf(args)
    return {
      async ours() {
        const figures: Record<string, number> = {}
        for (const [command, args] of Object.entries(COMMANDS)) {
          const { first, end } = await outputOf(args)
          figures[named(command)] = first
          if (command === 'check') figures[WHOLE] = end
        }
        return figures
      },
      async baseline(): Promise<Figures> {
        const { first } = await firstOutput(['-e', 'process.stdout.write(".")'], folder, '')
        return Object.fromEntries(Object.keys(COMMANDS).map((command) => [named(command), first]))
      },
    }
  },
}

/** Milliseconds to the first output and to the end, which is made where the command would go on. */
async function firstOutput(
  args: readonly string[],
  folder: string,
  admin: string,
): Promise<{ first: number; end: number }> {
  const goesOn = args.includes('run') || args.includes('dev')
  const begun = now()
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'], SIDECAR_ADMIN_URL: admin },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let first = Number.NaN
  for (const stream of [child.stdout, child.stderr]) {
    stream.once('data', () => {
      if (Number.isNaN(first)) first = now() - begun
      if (goesOn) child.kill('SIGTERM')
    })
    stream.resume()
  }
  const [code] = (await ended) as [number | null]
  // What was refused was not measured.
  if (!goesOn && code !== 0) throw new Error(`${args.slice(1).join(' ')} ended with ${code}`)
  return { first, end: now() - begun }
}
