import { expect, it, onTestFinished } from 'vitest'
import { createService } from '../../src/client/service.ts'
import { Bus } from '../../src/core/bus.ts'
import { fanOut } from '../../src/core/observer.ts'
import type { ShardTopics } from '../../src/core/shards.ts'
import { StoreError } from '../../src/core/store-error.ts'
import type { Store } from '../../src/core/store.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { createEngine } from '../../src/sidecar/engine.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { fakeHttp, keepingLog, longestWaits } from '../support/ports.ts'

const SERVICE = 'https://service.example'
const NOT_FOUND = { status: 404, headers: {}, body: '', truncated: false }

/** A replica that follows until `lead`. `refusal`: why the store refuses what a leader writes first. */
function follower(refusal: StoreError) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const inner = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => inner.close())
  const subscribers: Partial<ShardTopics>[] = []
  let leads = false
  const store: Store = {
    ...inner,
    shards: {
      ...inner.shards,
      get leads() {
        return leads
      },
      subscribe: (part) => void subscribers.push(part),
    },
    settings: {
      ...inner.settings,
      async checkpoint(name) {
        if (leads) throw refusal
        return await inner.settings.checkpoint(name)
      },
    },
  }
  const ports = { clock, random: longestWaits, log, http: fakeHttp(() => NOT_FOUND).http }
  const service = createService({ ...ports, baseUrl: SERVICE, token: 'svc_pat_x' })
  const engine = createEngine({
    ...ports,
    service,
    store,
    observer: fanOut([]),
    bus: new Bus(),
    tracer: plainTracer(longestWaits),
    handlers: [],
    tools: [],
    source: SERVICE,
    scope: null,
    startFrom: 'beginning',
    stream: { enabled: false },
    polling: { enabled: true, interval: 5000, sweep: 60_000 },
    webhooks: { enabled: false, publicUrl: null, secrets: { current: [] }, tolerance: 300_000 },
  })
  const lead = (): void => {
    leads = true
    for (const part of subscribers) part.led?.()
  }
  const messages = (text: string) => log.lines.filter(({ message }) => message.includes(text)).length
  return { clock, engine, lead, messages }
}

it('a replica that is fenced while it takes the lead gives up', async () => {
  const { clock, engine, lead, messages } = follower(new StoreError('fenced'))
  await engine.start()
  lead()
  await clock.advance(60_000)
  expect([messages('the lead was lost'), messages('could not be taken yet')]).toEqual([1, 0])
  await engine.stop(0)
})

it('a stop ends the wait of a replica that cannot take the lead yet', async () => {
  const { clock, engine, lead, messages } = follower(new StoreError('unreachable'))
  await engine.start()
  lead()
  await clock.advance(5100)
  expect(messages('could not be taken yet')).toBe(11)
  await engine.stop(0)
  await clock.settle()
  expect(clock.waiting).toBe(0)
})
