import { fileURLToPath } from 'node:url'
import closeWithGrace from 'close-with-grace'
import { playTour, startEmulator } from '../emulator/index.ts'
import { OperatorError } from '../std/errors.ts'
import { createSidecar } from '../sidecar/sidecar.ts'
import type { Context } from './context.ts'
import { configOfExample, startExampleApp } from './dev/app.ts'
import { isComplete, settled } from './dev/compare.ts'
import { consoleOf, devConfig } from './dev/config.ts'
import { observer } from './dev/observe.ts'
import { showToPeople, showToPrograms } from './dev/show.ts'
import { Tally } from './dev/tally.ts'
import { titlesOf } from './dev/titles.ts'
import { reportFailure } from './failure.ts'
import { readScenario } from './scenario.ts'

const TOUR = fileURLToPath(new URL('../../config/scenarios/tour.yaml', import.meta.url))
const TOKEN = 'svc_pat_dev'

interface DevOptions {
  once?: boolean
  scenario?: string
  json?: boolean
}

/**
 * Runs the emulator, a sidecar and an example app in one process, and prints a scenario as it
 * happens.
 */
export async function dev(context: Context, options: DevOptions): Promise<number> {
  const { terminal } = context
  const scenario = readScenario(options.scenario ?? TOUR)
  if (options.once === true && (scenario.sessions ?? []).length === 0)
    throw new OperatorError(`${options.scenario ?? TOUR} has no sessions: there is nothing to run`, 1)
  await using stack = new AsyncDisposableStack()
  const start = Date.now()

  const app = await startExampleApp()
  stack.defer(() => app.close())
  const emulator = await startEmulator({ scenario, token: TOKEN, allowHttpWebhooks: true })
  stack.defer(() => emulator.close())

  const config = await devConfig({ baseUrl: emulator.baseUrl, token: TOKEN }, context.env)
  const sidecar = await createSidecar({ config: { ...config, ...configOfExample(app) } })
  stack.defer(() => sidecar.stop())
  const show =
    options.json === true
      ? showToPrograms(terminal)
      : showToPeople(terminal, { start, console: () => consoleOf(sidecar) })
  sidecar.observe(observer((record) => show.record(record), titlesOf(emulator)))
  const tally = new Tally()
  sidecar.observe(tally.observer)

  const closing = closeWithGrace({ logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await stack.disposeAsync()
  })
  stack.defer(() => closing.uninstall())
  await sidecar.start()
  show.started({ service: emulator.baseUrl, admin: consoleOf(sidecar).url, app: app.url, token: TOKEN })

  await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario })
  const comparison = await settled(emulator.baseUrl, app.received, tally)
  show.ended(comparison, Date.now() - start)
  if (options.once === true) return isComplete(comparison) ? 0 : 1

  show.staying()
  return await new Promise<never>(() => undefined)
}
