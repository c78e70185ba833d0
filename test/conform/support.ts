import { expect, onTestFinished, vi } from 'vitest'
import { idsOf, RULES } from '../../src/conform/catalogue.ts'
import { Receiver } from '../../src/conform/receiver.ts'
import { conform, type Report } from '../../src/conform/run.ts'
import { startEmulator, type Emulator, type EmulatorOptions } from '../../src/emulator/index.ts'
import { createHttp } from '../../src/system/http.ts'
import { fields, type Change } from './proxy.ts'

/** What waits for the first ping takes as long as a ping does. */
export const PINGS = idsOf('EVT-28 LIM-30')

export const QUICK = new Set(RULES.map(({ id }) => id).filter((id) => !PINGS.includes(id)))

export async function emulator(options: EmulatorOptions = {}): Promise<Emulator> {
  // A run makes some sixty sessions: no time is spent on waiting for the budget of creations.
  const { limits, ...others } = options
  const started = await startEmulator({
    allowHttpWebhooks: true,
    limits: { creationBurst: 1000, readsBurst: 10_000, ...limits },
    ...others,
  })
  onTestFinished(() => started.close())
  return started
}

interface Settings {
  baseUrl: string
  token: string
  write?: boolean
  only?: ReadonlySet<string>
  timeout?: number
  patience?: number
  signal?: AbortSignal
}

/** A run with a receiver of its own for webhook deliveries. */
export async function run(settings: Settings): Promise<Report> {
  const http = createHttp()
  const receiver = await Receiver.listen('127.0.0.1', 0)
  try {
    const url = `http://127.0.0.1:${receiver.port}/hook`
    return await conform({
      http,
      write: false,
      parallel: 4,
      timeout: 60_000,
      patience: 4000,
      webhook: { receiver, url },
      ...settings,
    })
  } finally {
    await Promise.all([http.close(), receiver.close()])
  }
}

export function idsIn(report: Report, state: string): string[] {
  return report.verdicts.filter((verdict) => verdict.state === state).map(({ id }) => id)
}

/** What differs, as a person would want to read it in a failing test. */
export function differences(report: Report): string[] {
  return report.verdicts
    .filter(({ state }) => state === 'differs')
    .map(({ id, difference }) => `${id}: ${difference?.expected}; seen: ${difference?.seen}`)
}

/** The agent hangs on every message: whatever a check made stays for as long as its patience. */
export const hanging: Change = {
  ask: ({ path, body }) => {
    if (path.endsWith('/input')) fields(body)['text'] = 'hang'
  },
}

/** Waits until the emulator has so many sessions and webhooks, however slow the machine. */
export async function reached(of: Emulator, sessions: number, webhooks = 0): Promise<void> {
  const enough = async (): Promise<void> => {
    const there = await belongings(of)
    expect(there.sessions).toBeGreaterThanOrEqual(sessions)
    expect(there.webhooks).toBeGreaterThanOrEqual(webhooks)
  }
  await vi.waitFor(enough, { timeout: 40_000, interval: 20 })
}

/** The resources left on an emulator after a run. */
export function belongings(
  of: Emulator,
): Promise<{ sessions: number; webhooks: number; agents: number; models: number }> {
  const count = async (path: string): Promise<number> => {
    const reply = await fetch(`${of.baseUrl}${path}?limit=100`, {
      headers: { authorization: `Bearer ${of.token}` },
    })
    return ((await reply.json()) as { data: unknown[] }).data.length
  }
  return Promise.all(['/v1/sessions', '/v1/webhooks', '/v1/agents', '/v1/model-credentials'].map(count)).then(
    ([sessions = -1, webhooks = -1, agents = -1, models = -1]) => ({ sessions, webhooks, agents, models }),
  )
}
