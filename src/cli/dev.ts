import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import closeWithGrace from 'close-with-grace'
import { playTour, startEmulator } from '../emulator/index.ts'
import { createSidecar } from '../sidecar.ts'
import type { Context } from './context.ts'
import { startExampleApp, type ExampleApp } from './dev/app.ts'
import { compare, type Comparison } from './dev/compare.ts'
import { devConfig } from './dev/config.ts'
import { readLedger } from './dev/ledger.ts'
import { observer } from './dev/observe.ts'
import { freePort } from './dev/port.ts'
import { renderRecord, renderTitles } from './dev/printer.ts'
import { isComplete, renderSummary } from './dev/summary.ts'
import { titlesOf } from './dev/titles.ts'
import { reportFailure } from './failure.ts'
import { readScenario } from './scenario.ts'
import type { Terminal } from './terminal.ts'

const TOUR = fileURLToPath(new URL('../../config/scenarios/tour.yaml', import.meta.url))
const ADMIN_PORT = 8481
const WEBHOOK_PORT = 8480
const TOKEN = 'svc_pat_dev'
/** Milliseconds after the last message within which everything must be delivered and answered. */
const PATIENCE = 60_000
const LOOK_INTERVAL = 200

/** Emulator, sidecar and an example app in one process, playing a scenario before one's eyes. */
export async function dev(
  { terminal }: Context,
  options: { once?: boolean; scenario?: string },
): Promise<number> {
  const scenario = readScenario(options.scenario ?? TOUR)
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
  const screen = { start, width: terminal.width, paint: terminal.paint }
  sidecar.observe(observer((record) => terminal.out(`${renderRecord(record, screen)}\n`), titlesOf(emulator)))

  const closing = closeWithGrace({ logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await stack.disposeAsync()
  })
  stack.defer(() => closing.uninstall())
  await sidecar.start()
  terminal.out(
    heading(terminal, { service: emulator.baseUrl, admin: `http://127.0.0.1:${adminPort}`, app: app.url }),
  )
  terminal.out(`${renderTitles(screen)}\n`)

  await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario })
  const comparison = await settled(emulator.baseUrl, app)
  terminal.out(renderSummary(comparison, Date.now() - start, terminal.paint))
  if (options.once === true) return isComplete(comparison) ? 0 : 1

  terminal.out(farewell(terminal, adminPort))
  return await new Promise<never>(() => undefined)
}

/** Every run begins with an empty store; whoever holds the admin port holds the file of that name. */
async function freshStore(adminPort: number): Promise<string> {
  const file = `data/dev-${adminPort}.db`
  for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true })
  return file
}

/** Looks until everything that happened was delivered and answered, or patience ends. */
async function settled(baseUrl: string, app: ExampleApp): Promise<Comparison> {
  const deadline = performance.now() + PATIENCE
  for (;;) {
    const comparison = compare(await readLedger(baseUrl), app.received)
    if (isComplete(comparison) || performance.now() > deadline) return comparison
    await sleep(LOOK_INTERVAL)
  }
}

function heading({ paint }: Terminal, urls: { service: string; admin: string; app: string }): string {
  const row = (name: string, url: string, about: string): string =>
    `  ${paint('bold', name.padEnd(8))}  ${paint('cyan', url.padEnd(24))}  ${paint('dim', about)}\n`
  return [
    '\n',
    row('service', urls.service, `emulated; token ${TOKEN}`),
    row('sidecar', urls.admin, 'console, API and metrics'),
    row('app', urls.app, 'one handler, two tools'),
    '\n',
  ].join('')
}

function farewell({ paint }: Terminal, adminPort: number): string {
  const url = adminPort === ADMIN_PORT ? '' : ` --url http://127.0.0.1:${adminPort}`
  return [
    `\n  Still running: ${paint('cyan', `http://127.0.0.1:${adminPort}`)}. Ctrl-C ends it. Meanwhile, in another terminal:\n`,
    ...['status', 'events --follow', 'calls'].map((command) => `    npm start -- ${command}${url}\n`),
  ].join('')
}
