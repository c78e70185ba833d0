import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { request } from 'undici'
import { programOf } from '../../support/build.ts'
import { freePort } from '../../support/listen.ts'
import { Child } from '../child.ts'
import { now } from '../clock.ts'
import type { Measure } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { median } from '../statistics.ts'

const READY = 'start, run to /readyz'
const HELP_SOURCE = 'start, --help from source'
const HELP_BUILT = 'start, --help from dist'
/** Starts in one repetition, of which the median counts: one takes a tenth of a second, and the machine has moods. */
const STARTS = 5
/** Milliseconds between two looks at whether it is ready. */
const LOOK = 2
/** Longest until it is ready, milliseconds. */
const PATIENCE = 30_000

const Address = Type.Object({ url: Type.String(), token: Type.String() })

const start = (name: string, floor: number, goal: number): Measure => ({
  name,
  unit: 'ms',
  digits: 0,
  judge: (ours, baseline) => ours / baseline,
  judged: '# × node -e 0',
  floor: { at: 'most', value: floor },
  goal: { value: goal },
})

/**
 * How long people and orchestrators wait for the program; the baseline is a Node that does nothing, to its end. `run` has
 * an empty store and a service that answers.
 */
export const starts: Scenario = {
  measures: [start(READY, 6, 3), start(HELP_SOURCE, 2.2, 1.5), start(HELP_BUILT, 1.5, 1.2)],
  async open(bench) {
    const built = programOf('build').main
    const source = programOf('source').main
    const emulator = bench.use(await Child.fork('emulator'))
    const { url, token } = await emulator.ask('address', Address)
    const service = { base_url: url, token }
    const ready = () => untilReady(built, bench.folder(), service)
    // The first start of all writes the cache of compiled code; what counts is every later one.
    await ready()
    for (const main of [source, built]) await untilEnd([main, '--help'])
    return {
      async ours() {
        return {
          [READY]: await repeated(ready),
          [HELP_SOURCE]: await repeated(() => untilEnd([source, '--help'])),
          [HELP_BUILT]: await repeated(() => untilEnd([built, '--help'])),
        }
      },
      async baseline() {
        const bare = await repeated(() => untilEnd(['-e', '0']))
        return { [READY]: bare, [HELP_SOURCE]: bare, [HELP_BUILT]: bare }
      },
    }
  },
}

async function repeated(run: () => Promise<number>): Promise<number> {
  const times: number[] = []
  while (times.length < STARTS) times.push(await run())
  return median(times)
}

/** Milliseconds until a Node with these arguments has ended. */
async function untilEnd(args: readonly string[]): Promise<number> {
  const begun = now()
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
  return now() - begun
}

/** Milliseconds until `run` answers /readyz with 200; then it is stopped. */
async function untilReady(main: string, folder: string, service: object): Promise<number> {
  const port = await freePort()
  const config = {
    service,
    store: { url: 'sqlite:store.db' },
    admin: { listen: `127.0.0.1:${port}` },
    handlers: [{ name: 'app', url: 'http://127.0.0.1:9', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }],
  }
  writeFileSync(path.join(folder, 'sidecar.json'), JSON.stringify(config))
  const begun = now()
  const child = spawn(process.execPath, [main, 'run', '-c', 'sidecar.json'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  try {
    while (!(await isReady(port))) {
      if (child.exitCode !== null) throw new Error(`run ended with ${child.exitCode}`)
      if (now() - begun > PATIENCE) throw new Error('run did not become ready')
      await pause(LOOK)
    }
    return now() - begun
  } finally {
    child.kill('SIGTERM')
    await ended
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/readyz`)
    await body.dump()
    return statusCode === 200
  } catch {
    // No program listens yet.
    return false
  }
}
