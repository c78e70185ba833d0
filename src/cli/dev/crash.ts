import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import path from 'node:path'
import { playTour, type Emulator } from '../../emulator/index.ts'
import type { Call } from '../../core/call.ts'
import type { DeliveryRecord } from '../../core/delivery.ts'
import { openSqliteStore } from '../../sidecar/store/sqlite/store.ts'
import { OperatorError } from '../../std/errors.ts'
import type { Log } from '../../std/ports.ts'
import { systemClock } from '../../system/clock.ts'
import { closeAtEnd } from '../closing.ts'
import type { Context } from '../context.ts'
import { jsonLine, type Terminal } from '../terminal.ts'
import { count } from '../text.ts'
import { settled, type Comparison } from './compare.ts'
import { startCrashApp, type CrashApp } from './crash-app.ts'
import { startGateway, type Gateway } from './crash-gateway.ts'
import { startService, TOKEN } from './parts.ts'

const TOOL = 'refund_order'
/** The moment of each kill must come within this time, milliseconds. */
const PATIENCE = 30_000
/** How long that moment lasts before the kill, milliseconds: a real tool takes time, too. */
const HOLD = 300
/** One page is enough: this scenario makes about twenty facts. */
const ALL = 1000

/**
 * Kills a sidecar in the middle of a tool run, of an answer and of a callback, and shows what was durable, what was
 * repeated, and that nothing was lost or done twice. All of it is read from the store, the service and the app.
 */
export async function crash({ terminal }: Context, options: { json?: boolean }): Promise<number> {
  await using stack = new AsyncDisposableStack()
  closeAtEnd(stack, terminal, 1)
  const show = showSteps(terminal, options.json === true)

  const folder = await mkdtemp(path.join(tmpdir(), 'session-sidecar-crash-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const app = stack.use(await startCrashApp(secret, TOOL))
  const emulator = await startService(stack, { name: 'lines' })
  const gateway = stack.use(await startGateway(emulator))
  const config = await writeConfig(folder, { app, gateway, secret })
  const run = (): Promise<Child> => startChild(config, stack, show)

  show.title('A crash while a tool runs')
  let child = await run()
  const sent = [
    { title: 'Refund order 42', messages: [`call ${TOOL} {"order_id":"42"}\nwait 2s\nsay {{last}}`] },
  ]
  await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario: { name: 'crash', sessions: sent } })
  const { call_id: callId } = await within(app.firstRun, 'call of the tool')
  show.step('app', runText(app, 0))
  await child.kill()
  show.step('store', callText(await callIn(folder, callId)))
  show.step('app', `the refund is made (${count(app.refunds.size, 'refund')} so far); the response is lost`)

  show.title('A crash while the answer is posted')
  child = await run()
  await within(gateway.firstAnswer, 'answer of the call')
  show.step('app', runText(app, 1))
  show.step(
    'app',
    `knows the key, makes no second refund (${count(app.refunds.size, 'refund')}), returns the stored result`,
  )
  show.step('service', `${answersText(emulator, callId)}; its response is held back`)
  await child.kill()
  show.step('store', callText(await callIn(folder, callId)))

  show.title('A crash while a callback is sent')
  child = await run()
  const { id } = await within(app.firstSettled, 'turn.settled')
  show.step('service', answersText(emulator, callId))
  show.step('app', `receives turn.settled ${id}, and has not responded yet`)
  await child.kill()
  show.step('store', callText(await callIn(folder, callId)))
  show.step('store', deliveryText(await deliveryIn(folder, id)))
  child = await run()
  const comparison = await settled(emulator.baseUrl, app.accepted, {
    facts: app.accepted.size,
    delivered: app.accepted.size,
  })
  await within(nothingPending(folder), 'end of the deliveries')
  show.step(
    'app',
    `receives turn.settled ${id} again, and accepts it (${count(app.accepted.get(id)?.times ?? 0, 'request')} with this id)`,
  )
  await child.stop()

  const results = await verdicts({ folder, callId, app, emulator, comparison })
  show.results(results)
  return results.every(({ ok }) => ok) ? 0 : 1
}

function runText({ runs }: CrashApp, index: number): string {
  const run = runs[index]
  return `runs ${TOOL}: attempt ${run?.attempt}, uncertain ${run?.uncertain}, idempotency-key ${run?.call_id}`
}

function callText({ callId, state, attempts, result, outcome }: Call): string {
  const stored = result === null ? 'no result' : `result ${result.text}`
  const posted =
    outcome === null
      ? ''
      : `, outcome ${outcome === 'unknown' ? 'unknown (no response, and the call is over)' : outcome}`
  return `${callId} is ${state}: ${count(attempts, 'run')}, ${stored}${posted}`
}

function answersText(emulator: Emulator, callId: string): string {
  const taken = answersOf(emulator, callId)
  return `has accepted ${count(taken.length, 'answer')} of ${callId}`
}

function answersOf(emulator: Emulator, callId: string) {
  return emulator.ledger().answers.filter(({ call_id }) => call_id === callId)
}

function deliveryText({ factId, status, attempts }: DeliveryRecord): string {
  const outcomes = attempts.map(({ status: answer, error }) => error ?? `answered ${answer}`)
  return `the delivery of ${factId} is ${status}${outcomes.map((outcome) => `; an attempt: ${outcome}`).join('')}`
}

interface Verdict {
  ok: boolean
  text: string
}

/** The result, read from the store, the service and the app. */
async function verdicts(end: {
  folder: string
  callId: string
  app: CrashApp
  emulator: Emulator
  comparison: Comparison
}): Promise<Verdict[]> {
  const { folder, callId, app, emulator, comparison } = end
  const [call, deliveries] = await reading(
    folder,
    async (store) =>
      [await store.calls.get(callId), (await store.read.deliveries({ limit: ALL })).rows] as const,
  )
  const delivered = deliveries.filter(({ status }) => status === 'delivered').length
  const answers = answersOf(emulator, callId)
  const repeated = [...app.accepted.values()].filter(({ times }) => times > 1)
  const keys = new Set(app.runs.map(({ call_id: key }) => key))
  return [
    {
      ok: app.refunds.size === 1 && keys.size === 1 && app.runs.slice(1).every(({ uncertain }) => uncertain),
      text: `${count(app.runs.length, 'run')} of the tool under ${count(keys.size, 'key')}, every repeat with uncertain true: ${count(app.refunds.size, 'refund')}`,
    },
    {
      ok: answers.length === 1 && call?.state === 'answered',
      text: `${count(answers.length, 'answer')} at the service, the call is ${call?.state} in the store`,
    },
    {
      ok: delivered === deliveries.length && delivered === app.accepted.size,
      text: `${delivered} of ${count(deliveries.length, 'fact')} delivered; ${count(repeated.length, 'callback')} came again, with the same id: ${repeated.map(({ event }) => event.type).join(', ')}`,
    },
    {
      ok: comparison.missing.length === 0,
      text: `${comparison.expected.length - comparison.missing.length} of ${count(comparison.expected.length, 'expected fact')} delivered (session statuses are not compared)`,
    },
    { ok: comparison.underWay.length === 0, text: 'everything is idle' },
  ]
}

async function nothingPending(folder: string): Promise<void> {
  const pending = () => reading(folder, (store) => store.read.deliveries({ limit: 1, status: 'pending' }))
  while ((await pending()).rows.length > 0) await sleep(HOLD)
}

type Store = ReturnType<typeof openSqliteStore>

/** Reads the store as a restart would find it: from a copy, so that the demonstration changes nothing. */
async function reading<T>(folder: string, read: (store: Store) => Promise<T>): Promise<T> {
  const copy = await mkdtemp(path.join(folder, 'copy-'))
  for (const suffix of ['', '-wal'])
    await copyFile(path.join(folder, `sidecar.db${suffix}`), path.join(copy, `sidecar.db${suffix}`)).catch(
      ignore,
    )
  const store = openSqliteStore({ path: path.join(copy, 'sidecar.db'), clock: systemClock(), log: SILENT })
  try {
    return await read(store)
  } finally {
    await store.close()
  }
}

const ignore = (): void => undefined
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }

async function callIn(folder: string, callId: string): Promise<Call> {
  const call = await reading(folder, (store) => store.calls.get(callId))
  if (call === null) throw new OperatorError(`the store has no call ${callId}`)
  return call
}

async function deliveryIn(folder: string, factId: string): Promise<DeliveryRecord> {
  const { rows } = await reading(folder, (store) => store.read.deliveries({ limit: 1, factId }))
  const [delivery] = rows
  if (delivery === undefined) throw new OperatorError(`the store has no delivery of ${factId}`)
  return delivery
}

async function writeConfig(
  folder: string,
  { app, gateway, secret }: { app: CrashApp; gateway: Gateway; secret: string },
): Promise<string> {
  const file = path.join(folder, 'sidecar.json')
  const config = {
    service: { base_url: gateway.url, token: TOKEN },
    store: { url: 'sqlite:sidecar.db' },
    stream: { start_from: 'beginning' },
    polling: { interval: '2s' },
    handlers: [{ name: 'app', url: `${app.url}/agent-events`, secret }],
    tools: [
      {
        name: TOOL,
        description: 'Refunds an order',
        parameters: { type: 'object' },
        url: `${app.url}/tools/${TOOL}`,
        secret,
      },
    ],
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'error' },
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

interface Child {
  /** SIGKILL, after a moment: the process cannot write anything more. */
  kill(): Promise<void>
  stop(): Promise<void>
}

/** `run` in a process of its own. */
async function startChild(config: string, stack: AsyncDisposableStack, show: Steps): Promise<Child> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SIDECAR_')))
  const program = process.argv[1] ?? ''
  const child = spawn(process.execPath, [...process.execArgv, program, 'run', '-c', config], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(child, 'exit')
  stack.defer(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  show.step('sidecar', `starts as process ${child.pid}`)
  return {
    async kill() {
      await sleep(HOLD)
      child.kill('SIGKILL')
      await ended
      show.step('sidecar', `process ${child.pid} is killed: SIGKILL`)
    },
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function within<T>(moment: Promise<T>, what: string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const limit = setTimeout(
    () => reject(new OperatorError(`no ${what} came within ${PATIENCE / 1000} s`)),
    PATIENCE,
  )
  try {
    return await Promise.race([moment, promise])
  } finally {
    clearTimeout(limit)
  }
}

interface Steps {
  title(text: string): void
  step(who: string, text: string): void
  results(verdicts: readonly Verdict[]): void
}

function showSteps({ out, paint }: Terminal, json: boolean): Steps {
  const start = performance.now()
  const seconds = (): number => (performance.now() - start) / 1000
  if (json) {
    return {
      title: (text) => out(jsonLine({ kind: 'title', text })),
      step: (who, text) => out(jsonLine({ kind: 'step', seconds: seconds(), who, text })),
      results: (verdicts) =>
        out(jsonLine({ kind: 'summary', complete: verdicts.every(({ ok }) => ok), verdicts })),
    }
  }
  return {
    title: (text) => out(`\n  ${paint('bold', text)}\n`),
    step: (who, text) =>
      out(`${paint('dim', seconds().toFixed(3).padStart(8))}  ${paint('cyan', who.padEnd(8))}  ${text}\n`),
    results(verdicts) {
      out(
        `\n${verdicts.map(({ ok, text }) => `  ${ok ? paint('green', '✓') : paint('red', '✗')} ${text}\n`).join('')}`,
      )
      out(
        `  ${paint('dim', `in ${seconds().toFixed(1)} s; read from the store, the service's log and the app`)}\n`,
      )
    },
  }
}
