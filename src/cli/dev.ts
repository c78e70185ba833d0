import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import closeWithGrace from 'close-with-grace'
import { playTour, startEmulator } from '../emulator/index.ts'
import { OperatorError } from '../std/errors.ts'
import { createSidecar } from '../sidecar/sidecar.ts'
import type { Context } from './context.ts'
import { startExampleApp, type ExampleApp } from './dev/app.ts'
import { compare, type Comparison } from './dev/compare.ts'
import { devConfig } from './dev/config.ts'
import { readLedger } from './dev/ledger.ts'
import { observer } from './dev/observe.ts'
import { freePort } from './dev/port.ts'
import { showToPeople, showToPrograms } from './dev/show.ts'
import { isComplete } from './dev/summary.ts'
import { Tally } from './dev/tally.ts'
import { titlesOf } from './dev/titles.ts'
import { reportFailure } from './failure.ts'
import { readScenario } from './scenario.ts'

const TOUR = fileURLToPath(new URL('../../config/scenarios/tour.yaml', import.meta.url))
const ADMIN_PORT = 8481
const WEBHOOK_PORT = 8480
const TOKEN = 'svc_pat_dev'
/** Milliseconds after the last message until everything must be delivered and answered. */
const PATIENCE = 60_000
const LOOK_INTERVAL = 200

/**
 * Runs the emulator, a sidecar and an example app in one process, and prints a scenario as it
 * happens.
 */
export async function dev(
  { terminal }: Context,
  options: { once?: boolean; scenario?: string; json?: boolean },
): Promise<number> {
  const scenario = readScenario(options.scenario ?? TOUR)
  if (options.once === true && (scenario.sessions ?? []).length === 0)
    throw new OperatorError(`${options.scenario ?? TOUR} has no sessions: there is nothing to run`, 1)
  await using stack = new AsyncDisposableStack()
  const start = Date.now()

  const app = await startExampleApp()
  stack.defer(() => app.close())
  const emulator = await startEmulator({ scenario, token: TOKEN, allowHttpWebhooks: true })
  stack.defer(() => emulator.close())

  const adminPort = await freePort(ADMIN_PORT)
  const storeFile = await freshStore(adminPort)
  const webhookPort = await freePort(WEBHOOK_PORT)
  const service = { baseUrl: emulator.baseUrl, token: TOKEN }
  const sidecar = await createSidecar({
    config: devConfig({ service, app, adminPort, webhookPort, storeFile }),
  })
  stack.defer(() => sidecar.stop())
  const admin = `http://127.0.0.1:${adminPort}`
  const show =
    options.json === true
      ? showToPrograms(terminal)
      : showToPeople(terminal, { start, admin, urlNeeded: adminPort !== ADMIN_PORT })
  sidecar.observe(observer((record) => show.record(record), titlesOf(emulator)))
  const tally = new Tally()
  sidecar.observe(tally.observer)

  const closing = closeWithGrace({ logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await stack.disposeAsync()
  })
  stack.defer(() => closing.uninstall())
  await sidecar.start()
  show.started({ service: emulator.baseUrl, admin, app: app.url, token: TOKEN })

  await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario })
  const comparison = await settled(emulator.baseUrl, app, tally)
  show.ended(comparison, Date.now() - start)
  if (options.once === true) return isComplete(comparison) ? 0 : 1

  show.staying()
  return await new Promise<never>(() => undefined)
}

/**
 * Every run begins with an empty store. The file is named by the admin port, so only one process
 * uses it.
 */
async function freshStore(adminPort: number): Promise<string> {
  const file = `data/dev-${adminPort}.db`
  for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true })
  return file
}

/** Waits until every event was delivered, answered and shown, or the time is over. */
async function settled(baseUrl: string, app: ExampleApp, tally: Tally): Promise<Comparison> {
  const deadline = performance.now() + PATIENCE
  for (;;) {
    const comparison = compare(await readLedger(baseUrl), app.received, tally)
    if (isComplete(comparison) || performance.now() > deadline) return comparison
    await sleep(LOOK_INTERVAL)
  }
}
