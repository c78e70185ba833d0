import { expect, it, onTestFinished } from 'vitest'
import type { StoredFact } from '../../src/core/fact.ts'
import type { JsonObject } from '../../src/std/json.ts'
import { ServiceError } from '../../src/core/errors.ts'
import { Bus } from '../../src/core/bus.ts'
import type { Service } from '../../src/core/ports.ts'
import type { Page, Session, Turn } from '../../src/core/resource.ts'
import { readItem, readSession, readTurn } from '../../src/core/wire.ts'
import { allShards } from '../../src/core/shards.ts'
import { createExpectations } from '../../src/sidecar/intake/schedule.ts'
import { createIntake } from '../../src/sidecar/intake/commit.ts'
import { createHintFilter } from '../../src/sidecar/intake/ownership.ts'
import {
  createCallTaker,
  createItems,
  createPrefetch,
  type CallTaker,
  type Prefetch,
} from '../../src/sidecar/intake/snapshot.ts'
import type { Hint } from '../../src/core/hint.ts'
import { ITEMS_SINCE } from '../../src/core/checkpoint.ts'
import type { OwnerRecord } from '../../src/core/scope.ts'
import type { Store } from '../../src/core/store.ts'
import { createSessionReader, type ReadOptions } from '../../src/sidecar/intake/reconcile.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { everySession } from '../support/ownership.ts'
import { keepingLog } from '../support/ports.ts'

function pageOf<T>(...data: T[]): Page<T> {
  return { data, hasMore: false, lastId: null }
}

interface Parts {
  stream?: ReadOptions['stream']
  owner?: OwnerRecord | null
  prefetch?: Partial<Prefetch>
  calls?: Partial<CallTaker>
}

/** A reader of one session, over a service that says of it what `said` does. `owner`: of the session; null: there is no scope. */
function open(
  said: Partial<Service>,
  { stream = null, owner = null, prefetch = {}, calls = {} }: Parts = {},
) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  const nothing = () => undefined
  const service: Partial<Service> = {
    listTurns: async () => pageOf(),
    listItems: async () => pageOf(),
    clockOffset: () => 0,
    clockOpen: () => 1000,
    ...said,
  }
  const facts: StoredFact[] = []
  const bus = new Bus()
  bus.subscribe({ factsAdded: (added) => facts.push(...added) })
  const noted = { filter: { active: true }, isOurs: () => true, noted: async () => owner }
  const ownership = { ...everySession(store), ...(owner === null ? {} : noted) }
  const intake = createIntake({ store, bus, filter: createHintFilter(store, null), hasTools: false })
  const reader = createSessionReader({
    service: service as Service,
    store,
    intake,
    items: createItems({ service: service as Service, store, intake, clock, log }),
    clock,
    log,
    tools: new Set(),
    stream,
    bus,
    prefetch: { hinted: nothing, looked: nothing, take: nothing, drop: nothing, ...prefetch },
    expectations: createExpectations(clock, store.shards),
    ownership,
    calls: { take: async () => undefined, headStart: async () => false, look: nothing, ...calls },
  })
  /** Reads it when it is to be read. @returns the facts that this made, null when it is not. */
  const readOn = async (): Promise<string[] | null> => {
    facts.length = 0
    const [entry] = await store.hints.claim(1)
    if (entry === undefined) return null
    if (await reader.read(entry, 's', undefined)) await store.hints.release(entry)
    return facts.map(({ type }) => type)
  }
  const read = async (): Promise<string[] | null> => {
    await intake.hint([{ sessionId: 's', channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])
    return await readOn()
  }
  return { clock, store, facts, intake, reader, read, readOn }
}

const sessionIs = (status: string, updated_at: number, required_actions: JsonObject[] = []) =>
  readSession({ id: 's', status, created_at: 1, updated_at, required_actions }, () => undefined)

/** The bodies of the facts that reading a session that failed with this turn makes. */
async function factsOf(turn: Turn): Promise<JsonObject[]> {
  const { facts, read } = open({
    readSession: async () => sessionIs('failed', 2),
    listTurns: async () => pageOf(turn),
    listItems: async () => pageOf(readItem({ id: 'item_1', type: 'error', created_at: 1 }, 's')),
  })
  await read()
  return facts.filter(({ type }) => type === 'session.failed').map(({ body }) => JSON.parse(body))
}

const turn = (status: string) =>
  readTurn({ id: 't', status, created_at: 1, completed_at: status === 'failed' ? 2 : null }, 's')

const NO_HOST = { takeOn: async () => undefined, headStart: async () => false }

it('a call taker gives all calls of a session their head start', async () => {
  const given: (readonly string[])[] = []
  const host = { ...NO_HOST, headStart: async (callIds: readonly string[]) => given.push(callIds) > 0 }
  const calls = createCallTaker({ tools: new Set(), clock: new VirtualClock(), bus: new Bus(), host })
  const actions = ['a', 'b'].map((call_id) => ({ type: 'function_call', call_id, name: 'lookup' }))
  await calls.headStart(sessionIs('requires_action', 2, actions))
  expect(given).toEqual([['a', 'b']])
})

it('the turns of a session are read when its tools have had their head start', async () => {
  const steps: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const { clock, read } = open(
    {
      readSession: async () =>
        sessionIs('requires_action', 2, [{ type: 'function_call', call_id: 'c', name: 'lookup' }]),
      async listTurns() {
        steps.push('turns')
        return pageOf(turn('running'))
      },
    },
    {
      calls: {
        take: async () => void steps.push('take'),
        async headStart() {
          steps.push('head start')
          await promise
          return false
        },
      },
    },
  )
  const done = read()
  await clock.settle()
  expect(steps).toEqual(['take', 'head start'])
  resolve()
  expect(await done).toContain('session.requires_action')
  expect(steps).toEqual(['take', 'head start', 'turns'])
})

/** A call of turn `t` whose tool answers before the turns are read: these then show `turns`. */
function openFast(turns: JsonObject[], stream: ReadOptions['stream'], answered = true) {
  const requests: string[] = []
  const action = { type: 'function_call', call_id: 'c', name: 'lookup', turn_id: 't' }
  const said = [sessionIs('requires_action', 2, [action])]
  const reader = open(
    {
      async readSession() {
        requests.push('session')
        return said.shift() ?? sessionIs('working', 3)
      },
      async listTurns() {
        requests.push('turns')
        return pageOf(...turns.map((raw) => readTurn(raw, 's')))
      },
      async listArtifacts() {
        requests.push('artifacts')
        return []
      },
    },
    { stream, calls: { headStart: async () => answered } },
  )
  return { ...reader, requests }
}

const CONNECTED = { connected: () => true, heldFor: () => 0 }
const ENDED = { id: 't', status: 'completed', artifacts: 'ready', created_at: 1, completed_at: 2 }

it('the end of a turn that the answer of a fast tool caused is reported after its action is resolved, by the next read', async () => {
  const { clock, read, readOn, requests } = openFast([ENDED], CONNECTED)
  expect(await read()).toEqual([
    'session.created',
    'turn.started',
    'action.required',
    'session.requires_action',
  ])
  expect(requests).toEqual(['session', 'turns'])
  expect(await readOn()).toBeNull()
  await clock.advance(400)
  const later: string[] = []
  while (later.length === 0) {
    later.push(...((await readOn()) ?? []))
    await clock.advance(100)
  }
  expect(later).toEqual(['session.working', 'action.resolved', 'turn.completed', 'turn.settled'])
})

it('an action that came and went during a read that waits for the frame of its turn is reported by the next read', async () => {
  const { clock, read, readOn, requests } = openFast([ENDED], CONNECTED, false)
  expect(await read()).toEqual([])
  expect(requests.slice(0, 4)).toEqual(['session', 'turns', 'session', 'turns'])
  const later: string[] = []
  while (later.length === 0) {
    await clock.advance(100)
    later.push(...((await readOn()) ?? []))
  }
  expect(later).toEqual([
    'session.created',
    'session.working',
    'turn.started',
    'action.required',
    'action.resolved',
    'turn.completed',
    'turn.settled',
  ])
  expect(await read()).toEqual([])
})

it.each([
  { what: 'the stream is not connected', turns: [ENDED], stream: null },
  {
    what: 'another turn has begun since',
    turns: [{ id: 't2', status: 'working', created_at: 3 }, ENDED],
    stream: CONNECTED,
  },
])('a read that a fast tool ended the turn of is repeated at once if $what', async ({ turns, stream }) => {
  const { read, requests } = openFast(turns, stream)
  await read()
  expect(requests.slice(0, 4)).toEqual(['session', 'turns', 'session', 'turns'])
})

it('a failed session has the reason why its run could not start, though a turn of an unknown status continues', async () => {
  expect(await factsOf(turn('parked'))).toMatchObject([{ item: { id: 'item_1' } }])
})

it('a session whose turn failed needs no other reason', async () => {
  const [failed] = await factsOf(turn('failed'))
  expect(failed).not.toHaveProperty('item')
})

/** What a session is said to be, reading by reading. */
function inTurn(...said: Session[]): Pick<Service, 'readSession'> {
  const next = said.values()
  return {
    readSession: async () => {
      const { value } = next.next()
      if (value === undefined) throw new Error('it was read once more')
      return value
    },
  }
}

it('a transcript from items begins at the start of the process, also when the first session that is read came into the scope before', async () => {
  const owner: OwnerRecord = { owner: 'ours', adoptedAt: 1 }
  const { clock, store, read } = open({ readSession: async () => sessionIs('idle', 2) }, { owner })
  const started = clock.now()
  await store.settings.setCheckpoint(ITEMS_SINCE, '')
  await clock.advance(5000)
  await read()
  expect(await store.settings.checkpoint(ITEMS_SINCE)).toBe(String(started))
})

it('a snapshot that is older than the stored state changes nothing', async () => {
  const { read } = open(inTurn(sessionIs('working', 9), sessionIs('idle', 8)))
  expect(await read()).toEqual(['session.created', 'session.working'])
  expect(await read()).toEqual([])
})

it('a working session is read again after a snapshot that was older than its stored state', async () => {
  const { clock, read, readOn } = open(
    inTurn(sessionIs('working', 9), sessionIs('idle', 8), sessionIs('idle', 10)),
  )
  await read()
  await read()
  await clock.advance(300_000)
  expect(await readOn()).toEqual(['session.idle'])
})

it('a session that once had an updated_at in the future still accepts later states', async () => {
  const { read } = open(inTurn(sessionIs('working', Number.MAX_SAFE_INTEGER), sessionIs('idle', 8)))
  expect(await read()).toEqual(['session.created', 'session.working'])
  expect(await read()).toEqual(['session.idle'])
})

it('a service whose clock was set back by an hour is heard', async () => {
  const now = new VirtualClock().now()
  const { read } = open(inTurn(sessionIs('working', now + 3_600_000), sessionIs('idle', now)))
  expect(await read()).toEqual(['session.created', 'session.working'])
  expect(await read()).toEqual(['session.idle'])
})

it('a session is read on at once until all of its items are reported, in any number', async () => {
  const items = Array.from({ length: 4321 }, (_, index) =>
    readItem({ id: `item_${index}`, type: 'message', created_at: 1, detail: { event: 'said' } }, 's'),
  )
  const { read, readOn } = open({
    readSession: async () => sessionIs('idle', 9),
    listItems: async (_session, { after, limit = 20 }) => {
      const from = items.findIndex(({ id }) => id === after) + 1
      return { data: items.slice(from, from + limit), hasMore: from + limit < items.length, lastId: null }
    },
  })
  const types = await read()
  for (let more = await readOn(); more !== null; more = await readOn()) types?.push(...more)
  expect(types?.filter((type) => type === 'said')).toHaveLength(items.length)
})

it('a session from before the first look makes no facts of its old items, in any number', async () => {
  const hours = (count: number): number => count * 3_600_000
  const items = Array.from({ length: 4321 }, (_, index) =>
    readItem(
      {
        id: `item_${index}`,
        type: 'message',
        created_at: index < 4300 ? hours(1) : hours(5) + index,
        detail: { event: index < 4300 ? 'old' : 'new' },
      },
      's',
    ),
  )
  const session = sessionIs('working', hours(5))
  const { facts, reader, readOn } = open({
    readSession: async () => session,
    listItems: async (_session, { after, limit = 20 }) => {
      const from = items.findIndex(({ id }) => id === after) + 1
      return { data: items.slice(from, from + limit), hasMore: from + limit < items.length, lastId: null }
    },
  })
  await reader.readFirst(session, hours(5))
  const types = facts.map(({ type }) => type)
  for (let more = await readOn(); more !== null; more = await readOn()) types.push(...more)
  expect(types.filter((type) => type === 'old' || type === 'new')).toEqual(Array(21).fill('new'))
})

it('items of which a whole page cannot be read do not hide those that follow', async () => {
  const ids = Array.from({ length: 350 }, (_, index) => `item_${index}`)
  const bad = (id: string): boolean => ids.indexOf(id) > 20 && ids.indexOf(id) < 340
  const { read } = open({
    readSession: async () => sessionIs('idle', 9),
    listItems: async (_session, { after, limit = 20 }) => {
      const from = after === undefined ? 0 : ids.indexOf(after) + 1
      const page = ids.slice(from, from + limit)
      const data = page
        .filter((id) => !bad(id))
        .map((id) => readItem({ id, type: 'message', created_at: 1, detail: { event: 'said' } }, 's'))
      return { data, hasMore: from + limit < ids.length, lastId: page.at(-1) ?? null }
    },
  })
  expect((await read())?.filter((type) => type === 'said')).toHaveLength(31)
})

it('turns of which a whole page cannot be read do not hide those that lie before them', async () => {
  const ids = Array.from({ length: 330 }, (_, index) => `turn_${index}`)
  const { facts, read } = open({
    readSession: async () => sessionIs('idle', 9),
    listArtifacts: async () => [],
    listTurns: async (_session, { after, limit = 20 }) => {
      const from = after === undefined ? 0 : ids.indexOf(after) + 1
      const page = ids.slice(from, from + limit)
      const data = page
        .filter((id) => ids.indexOf(id) >= 325)
        .map((id) =>
          readTurn({ id, status: 'completed', created_at: 1, completed_at: 2, artifacts: 'ready' }, 's'),
        )
      return { data, hasMore: from + limit < ids.length, lastId: page.at(-1) ?? null }
    },
  })
  await read()
  expect(facts.filter(({ type }) => type === 'turn.settled')).toHaveLength(5)
})

it('each run that cannot start is reported, also of a session that had failed before', async () => {
  const items: [string, number][] = [['error', 1]]
  const { facts, read } = open({
    ...inTurn(sessionIs('failed', 2), sessionIs('failed', 10), sessionIs('failed', 20)),
    listItems: async () =>
      pageOf(...items.map(([type, at]) => readItem({ id: `item_${at}`, type, created_at: at }, 's'))),
  })
  const failed = async (): Promise<unknown[]> => {
    await read()
    return facts.filter(({ type }) => type === 'session.failed').map(({ body }) => JSON.parse(body).item.id)
  }
  expect(await failed()).toEqual(['item_1'])
  items.push(['error', 9])
  expect(await failed()).toEqual(['item_9'])
  // Its title was set.
  expect(await failed()).toEqual([])
})

it('a session whose turn failed has no reason of something else, though the turn was read before it', async () => {
  const failed = readTurn(
    { id: 't', status: 'failed', created_at: 3, completed_at: 5, artifacts: 'ready' },
    's',
  )
  const { facts, read } = open({
    ...inTurn(sessionIs('working', 4), sessionIs('failed', 6)),
    listTurns: async () => pageOf(failed),
    listArtifacts: async () => [],
    listItems: async () => pageOf(readItem({ id: 'item_1', type: 'error', created_at: 2 }, 's')),
  })
  expect(await read()).toContain('turn.failed')
  await read()
  expect(facts.map(({ type, body }) => [type, JSON.parse(body).item])).toEqual([
    ['session.failed', undefined],
  ])
})

it.each([
  { held: 0, wait: 2000 },
  { held: 5000, wait: 7000 },
  { held: Infinity, wait: 32_000 },
])(
  'the end of a turn waits $wait ms for its frame when frames waited here for $held ms',
  async (expected) => {
    const { clock, read, readOn } = open(
      { readSession: async () => sessionIs('idle', 2), listTurns: async () => pageOf(turn('failed')) },
      { stream: { connected: () => true, heldFor: () => Math.min(clock.steady() - began, expected.held) } },
    )
    const began = clock.steady()
    let facts = await read()
    while (facts?.includes('turn.failed') !== true && clock.steady() - began < 60_000) {
      await clock.advance(500)
      facts = await readOn()
    }
    expect(clock.steady() - began).toBe(expected.wait)
  },
)

it('a turn that a frame named and that does not exist does not block the others', async () => {
  const turns = Array.from({ length: 30 }, (_, index) =>
    readTurn(
      { id: `turn_${index}`, status: 'completed', created_at: 1, completed_at: 2, artifacts: 'ready' },
      's',
    ),
  )
  const { facts, intake, read } = open({
    readSession: async () => sessionIs('idle', 9),
    listArtifacts: async () => [],
    listTurns: async (_session, { after, limit = 20 }) => {
      const from = after === undefined ? 0 : turns.findIndex(({ id }) => id === after) + 1
      const data = turns.slice(from, from + limit)
      return { data, hasMore: from + limit < turns.length, lastId: data.at(-1)?.id ?? null }
    },
    readTurn: async () => {
      throw new ServiceError({ code: 'turn_not_found', status: 404, message: 'there is no such turn' })
    },
  })
  const lost = frameFact(1, 's', { type: 'stream.turn.ended', turnId: 'turn_lost' })
  await intake.commit({ facts: [lost] })
  await read()
  expect(facts.filter(({ type }) => type === 'turn.settled')).toHaveLength(30)
})

it('an action that only a list from before shows, of a turn whose end is reported, is not reported', async () => {
  const question = { type: 'question', turn_id: 't', call_id: 'c', created_at: 2 }
  const { read } = open({
    ...inTurn(sessionIs('working', 2), sessionIs('requires_action', 3, [question]), sessionIs('idle', 4)),
    listTurns: async () => pageOf(turn('failed')),
  })
  expect(await read()).toEqual(['session.created', 'session.working', 'turn.started', 'turn.failed'])
  expect(await read()).toEqual(['session.idle'])
})

it('an action that was over before its turn was read is reported, and then its end', async () => {
  const question = { type: 'question', turn_id: 't', call_id: 'c', created_at: 2 }
  const { read } = open({
    ...inTurn(sessionIs('requires_action', 2, [question]), sessionIs('idle', 4)),
    listTurns: async () => pageOf(turn('failed')),
  })
  expect(await read()).toEqual([
    'session.created',
    'turn.started',
    'action.required',
    'action.resolved',
    'turn.failed',
  ])
})

const requiring = (updatedAt: number) =>
  sessionIs('requires_action', updatedAt, [{ type: 'function_call', call_id: 'c', name: 'lookup' }])

/** Which sessions a read that begins with their hint takes calls of, when the service answers. */
function openPrefetch({ isOurs = true }: { isOurs?: boolean } = {}) {
  const clock = new VirtualClock()
  const taken: string[] = []
  const { promise: session, resolve: answer } = Promise.withResolvers<Session>()
  const known = { status: 'working', updatedAt: 2, deleted: false, atRest: false }
  let requests = 0
  const service: Partial<Service> = { readSession: () => (requests++, session), authorized: () => true }
  const resources: Partial<Store['resources']> = { glance: async () => new Map([['s', known]]) }
  const prefetch = createPrefetch({
    clock,
    log: keepingLog(),
    service: service as Service,
    store: { resources: resources as Store['resources'], shards: allShards() },
    ownership: { filter: { active: true }, isOurs: () => isOurs },
    calls: {
      async take({ id }) {
        taken.push(id)
      },
    },
    hint: async () => undefined,
  })
  prefetch.looked(true)
  const hinted = (delay: number, sessionId = 's'): void => {
    const hint: Hint = { sessionId, channel: 'stream', at: clock.now(), scope: 'session', delay }
    prefetch.hinted([hint], [hint])
  }
  hinted(0)
  return { clock, taken, requests: () => requests, answer, hinted }
}

it('a read that begins with its hint takes the calls of its session', async () => {
  const { clock, taken, answer } = openPrefetch()
  answer(requiring(2))
  await clock.settle()
  expect(taken).toEqual(['s'])
})

it.each([
  { what: 'left the scope', isOurs: false, later: false, updatedAt: 2 },
  { what: 'is to be read again since', isOurs: true, later: true, updatedAt: 2 },
  { what: 'is known to be newer', isOurs: true, later: false, updatedAt: 1 },
])(
  'a read that begins with its hint takes no calls of a session that $what',
  async ({ isOurs, later, updatedAt }) => {
    const { clock, taken, answer, hinted } = openPrefetch({ isOurs })
    if (later) hinted(300)
    answer(requiring(updatedAt))
    await clock.settle()
    expect(taken).toEqual([])
  },
)

it('a call that a read which was dropped has accepted is over when a later read does not list it', () => {
  const bus = new Bus()
  const gone: [readonly string[], string][] = []
  bus.subscribe({ actionsGone: (callIds, why) => void gone.push([callIds, why]) })
  const calls = createCallTaker({
    tools: new Set(['lookup']),
    clock: new VirtualClock(),
    bus,
    host: NO_HOST,
  })
  const action = (call_id: string) => ({ type: 'function_call', call_id, name: 'lookup', arguments: {} })
  const listing = (updatedAt: number, ...callIds: string[]) =>
    sessionIs('requires_action', updatedAt, callIds.map(action))
  const look = (session: Session | null, begunAt: number, stored: Session['actions'] = []) =>
    calls.look({ sessionId: 's', session, stored, begunAt })
  const now = new VirtualClock().steady()
  void calls.take(listing(2, 'one', 'two', 'three'))
  look(listing(9), now - 1)
  look(listing(2), now + 1)
  expect(gone).toEqual([])
  // The reads that follow store `two`, and list `three` once more.
  look(listing(3, 'two', 'three'), now + 1)
  look(listing(4), now + 1, listing(3, 'two').actions)
  look(listing(5), now + 1)
  expect(gone).toEqual([
    [['one'], 'resolved'],
    [['three'], 'resolved'],
  ])
  // A read that is late, with a session from before, finds them again.
  void calls.take(listing(6, 'four'))
  void calls.take(listing(5, 'four'))
  look(listing(6), now)
  expect(gone).toHaveLength(2)
  look(null, now)
  expect(gone.at(-1)).toEqual([['four'], 'deleted'])
})

// A frame dropped the reading of the frame before, and its request stayed: 500 of them waited for a slow service.
it('two requests ahead of their hints are under way at most, however many hints come', async () => {
  const { clock, requests, answer, hinted } = openPrefetch()
  for (let frame = 0; frame < 20; frame++) hinted(0)
  for (let frame = 0; frame < 20; frame++) {
    hinted(0, `s${frame}`)
    await clock.advance(400)
  }
  expect(requests()).toBe(2)
  answer(sessionIs('working', 2))
  await clock.advance(2000)
  hinted(0)
  expect(requests()).toBe(3)
})

it('a call accepted ahead of its session is over, although the session has another call by then', async () => {
  const bus = new Bus()
  const gone: string[] = []
  bus.subscribe({ actionsGone: (callIds) => void gone.push(...callIds) })
  const clock = new VirtualClock()
  const calls = createCallTaker({ tools: new Set(['lookup']), clock, bus, host: NO_HOST })
  const listing = (updatedAt: number, callId: string) =>
    sessionIs('requires_action', updatedAt, [
      { type: 'function_call', call_id: callId, name: 'lookup', arguments: {} },
    ])
  // This read fails behind that, as when the turns cannot be read.
  await calls.take(listing(2, 'one'))
  await clock.advance(1000)
  const begunAt = clock.steady()
  const session = listing(3, 'two')
  await calls.take(session)
  calls.look({ sessionId: 's', session, stored: [], begunAt })
  expect(gone).toEqual(['one'])
})

/** What a claimed hint makes of a prefetch of its session. */
async function usesPrefetch(change: {
  elsewhere: boolean
  listed: boolean
}): Promise<('taken' | 'dropped' | 'read')[]> {
  const used: ('taken' | 'dropped' | 'read')[] = []
  const session = sessionIs('working', 2)
  const readSession = async (): Promise<Session> => (used.push('read'), session)
  const { intake, store, reader } = open(
    { readSession },
    {
      prefetch: {
        take() {
          if (used.includes('dropped')) return undefined
          used.push('taken')
          return Promise.resolve(session)
        },
        drop: () => void used.push('dropped'),
      },
    },
  )
  await intake.hint([{ sessionId: 's', channel: 'stream', at: 1, scope: 'session', delay: 0 }])
  const [entry] = await store.hints.claim(1)
  if (entry === undefined) throw new Error('there is no hint')
  await reader.read({ ...entry, elsewhere: change.elsewhere }, 's', change.listed ? session : undefined)
  return used
}

// A webhook about a later change came to another replica, whose hint was acknowledged by what this one had read before.
it.each([
  { what: 'taken where this process alone stored hints', elsewhere: false, listed: false, used: ['taken'] },
  { what: 'dropped where another process did', elsewhere: true, listed: false, used: ['dropped', 'read'] },
  { what: 'dropped where the list shows the session', elsewhere: false, listed: true, used: ['dropped'] },
])('a prefetch is $what', async ({ used, ...change }) => {
  expect(await usesPrefetch(change)).toEqual(used)
})

it('the end of each turn waits for its own frame, although an earlier turn of the session waits already', async () => {
  const turn = (id: string, over: boolean): Turn =>
    readTurn({ id, status: over ? 'failed' : 'working', created_at: 1, completed_at: over ? 2 : null }, 's')
  let turns = [turn('two', false), turn('one', true)]
  const { clock, facts, read, readOn } = open(
    { readSession: async () => sessionIs('working', 2), listTurns: async () => pageOf(...turns) },
    { stream: CONNECTED },
  )
  expect(await read()).toEqual([])
  await clock.advance(1999)
  turns = [turn('two', true), turn('one', true)]
  await clock.advance(1)
  await readOn()
  const ended = (): (string | null)[] =>
    facts.flatMap(({ type, turnId }) => (type === 'turn.failed' ? [turnId] : []))
  expect(ended()).not.toContain('two')
  await clock.advance(2000)
  await readOn()
  expect(ended()).toContain('two')
})
