import { fileURLToPath } from 'node:url'
import { playTour } from '../../emulator/index.ts'
import { OperatorError } from '../../std/errors.ts'
import { closeAtEnd } from '../closing.ts'
import type { Context } from '../context.ts'
import { Accepted } from './accepted.ts'
import { configOfExample, startExampleApp } from './app.ts'
import { isComplete, settled, shown } from './compare.ts'
import { consoleOf, devConfig, temporaryFolder } from './config.ts'
import { observer, titlesOf } from './observe.ts'
import { startService, startSidecar, TOKEN } from './parts.ts'
import { showToPeople, showToPrograms } from './show.ts'
import { readScenario } from '../scenario.ts'

const TOUR = fileURLToPath(new URL('../../../config/scenarios/tour.yaml', import.meta.url))

interface TourOptions {
  once?: boolean
  scenario?: string
  json?: boolean
}

/** Runs the emulator, a sidecar and an example app in one process, and prints a scenario as it happens. */
export async function tour(context: Context, options: TourOptions): Promise<number> {
  const { terminal, env } = context
  const { scenario: file = TOUR, once = false, json = false } = options
  const scenario = readScenario(file)
  if (once && (scenario.sessions ?? []).length === 0)
    throw new OperatorError(`${file} has no sessions: there is nothing to run`, 1)
  await using stack = new AsyncDisposableStack()
  closeAtEnd(stack, terminal, once ? 1 : 0)
  const start = Date.now()

  const app = await startExampleApp()
  stack.defer(() => app.close())
  const emulator = await startService(stack, scenario)
  const { baseUrl } = emulator
  const show = json ? showToPrograms(terminal) : showToPeople(context, start)
  const tally = new Accepted()
  const folder = await temporaryFolder(stack)
  const configure = async () => ({
    ...(await devConfig({ baseUrl, token: TOKEN }, env, folder)),
    ...configOfExample(app),
  })
  const sidecar = await startSidecar({}, stack, configure, [
    observer((record) => show.record(record), titlesOf(emulator)),
    tally.observer,
  ])
  const admin = consoleOf(sidecar)
  show.started({ service: baseUrl, admin: admin.url, app: app.url, token: TOKEN })

  await playTour({
    baseUrl,
    token: TOKEN,
    scenario,
    beforeAnswer: (callId) => shown(app.received, callId),
  })
  const comparison = await settled(baseUrl, app.received, tally)
  show.ended(comparison, Date.now() - start)
  if (once) return isComplete(comparison) ? 0 : 1

  show.staying(admin)
  return await new Promise<never>(() => undefined)
}
