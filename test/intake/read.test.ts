import { expect, it, onTestFinished } from 'vitest'
import type { StoredFact } from '../../src/core/fact.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { fanOut } from '../../src/core/observer.ts'
import type { Service } from '../../src/core/ports.ts'
import type { Page, Turn } from '../../src/core/resource.ts'
import { readItem, readSession, readTurn } from '../../src/core/wire.ts'
import { createIntake } from '../../src/intake/intake.ts'
import { createSessionReader } from '../../src/intake/read.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'

function pageOf<T>(...data: T[]): Page<T> {
  return { data, hasMore: false, lastId: null }
}

/** The bodies of the facts that reading a session that failed with this turn makes. */
async function factsOf(turn: Turn): Promise<JsonObject[]> {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  const nothing = () => undefined
  const session = readSession(
    { id: 's', status: 'failed', created_at: clock.now(), updated_at: clock.now(), required_actions: [] },
    nothing,
  )
  const item = readItem({ id: 'item_1', type: 'error', created_at: 1 }, 's')
  const service: Partial<Service> = {
    readSession: async () => session,
    listTurns: async () => pageOf(turn),
    listItems: async () => pageOf(item),
    clockOffset: () => 0,
  }
  const nudge = { dirty: nothing, lanes: nothing, hints: nothing, calls: nothing, session: nothing }
  const facts: StoredFact[] = []
  const observer = fanOut([{ fact: (fact) => facts.push(fact) }])
  const intake = createIntake({ store, observer, nudge, clockOffset: () => 0 })
  const reader = createSessionReader({
    service: service as Service,
    store,
    intake,
    items: null,
    clock,
    log,
    tools: () => new Set(),
    streamConnected: () => false,
    startedAt: clock.steady(),
    announce: nothing,
    ahead: { dirty: nothing, take: nothing },
    takeCalls: async () => undefined,
    onActionsGone: nothing,
  })
  await intake.hint([{ sessionId: 's', channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])
  const [entry] = await store.claimHints(1, clock.steady())
  if (entry === undefined) throw new Error('there is no hint')
  await reader.read(entry, 's', undefined)
  return facts.filter(({ type }) => type === 'session.failed').map(({ body }) => JSON.parse(body))
}

const turn = (status: string) =>
  readTurn({ id: 't', status, created_at: 1, completed_at: status === 'failed' ? 2 : null }, 's')

it('a session that failed tells why its run could not start, though a turn of an unknown status goes on', async () => {
  expect(await factsOf(turn('parked'))).toMatchObject([{ item: { id: 'item_1' } }])
})

it('a session whose turn failed needs no other reason', async () => {
  const [failed] = await factsOf(turn('failed'))
  expect(failed).not.toHaveProperty('item')
})
