import { afterEach, describe, expect, it, test } from 'vitest'
import { needsOf, type Need, type Seen } from '../../src/sidecar/admin/routes/need.ts'
import type { StatusReport } from '../../src/sidecar/admin/routes/status.ts'
import type { DeliveryRecord } from '../../src/core/delivery.ts'
import { acknowledgeFirst, actionRaw, frameFact, readingOf, sessionRaw, turnFact, turnRaw } from './seed.ts'
import { dataOf, startAdmin, STATUS, type Running } from './running.ts'

const DAY = 86_400_000
const NOW = 1_000 * DAY
const HANDLER = {
  name: 'app',
  state: 'up',
  since: null,
  lastError: null,
  pending: 0,
  oldestPendingAt: null,
  dead: 0,
} as const
const QUIET: StatusReport = {
  ...STATUS,
  routes: [],
  needs_action: [],
  token: { state: 'accepted', scopes: null, expires_at: null },
}

function needs(status: Partial<StatusReport>, seen: Partial<Seen> = {}): Need[] {
  return needsOf({
    status: { ...QUIET, ...status },
    handlers: [],
    actions: [],
    stuck: [],
    more: false,
    now: NOW,
    ...seen,
  })
}

const texts = (...given: Parameters<typeof needs>): string[] => needs(...given).map(({ what }) => what)

test('nothing needs attention where all is well', () => {
  expect(needs({}, { handlers: [HANDLER, { ...HANDLER, name: 'audit', pending: 3 }] })).toEqual([])
})

test('a token that was rejected, has expired or expires soon', () => {
  const token = (state: 'accepted' | 'rejected', expires_at: number | null) =>
    needs({ token: { state, scopes: null, expires_at } }).map(({ tone, what, since }) => [tone, what, since])
  expect(token('rejected', NOW - DAY)).toEqual([['bad', 'the service rejects the token', null]])
  expect(token('accepted', NOW - DAY)).toEqual([['warn', 'the token expired at 1972-09-26T00:00:00Z', null]])
  expect(token('accepted', NOW + 6 * DAY)).toEqual([
    ['warn', 'the token expires at 1972-10-03T00:00:00Z', null],
  ])
  expect(token('accepted', NOW + 8 * DAY)).toEqual([])
})

test('routes that are not known, in one entry, which keeps its id when one of them is found', () => {
  const missing = (operation: string, key: string | null) => ({
    operation,
    method: null,
    path: null,
    how: 'missing' as const,
    reason: key && `the service's document has no ${operation}; set service.routes.${key}`,
  })
  const [turn, send, answer] = [
    missing('readTurn', 'turn_path'),
    missing('sendMessage', 'message_path'),
    missing('answer', null),
  ] as const
  expect(needs({ routes: [turn, send, answer] })).toMatchObject([
    {
      id: 'routes',
      what: "the service's routes for readTurn, sendMessage, answer are not known",
      detail: turn.reason,
      advice: '"session-sidecar status --verbose" shows the key of each in service.routes',
    },
  ])
  expect(needs({ routes: [send] })).toMatchObject([
    { id: 'routes', what: "the service's route for sendMessage is not known", advice: send.reason },
  ])
})

test('a store that refuses writes, with the reason', () => {
  expect(needs({ store: { state: 'refusing', since: 7, reason: 'full' } })).toMatchObject([
    { tone: 'bad', what: 'the store refuses writes', since: 7, detail: 'full', advice: 'free disk space' },
  ])
})

test('a wait that the service asked for, until it is over, whatever time it gives', () => {
  const hold = (held_until: number) => texts({ service: { ...STATUS.service, held_until } })
  expect(hold(NOW)).toEqual([])
  expect(hold(NOW + 60_000)).toEqual([
    'the service asked the sidecar to wait: no requests until 1972-09-27T00:01:00Z',
  ])
  expect(hold(1e300)).toHaveLength(1)
})

test('a leader that is not seen, by its name and id', () => {
  const replica = {
    id: 'a1b2c3d4e5f6',
    name: 'vm',
    version: '1',
    self: false,
    leader: true,
    shards: 1,
    epoch: null,
    configuration: null,
    started_at: 0,
  }
  const leader = (change: object) => texts({ replicas: [{ ...replica, seen_seconds_ago: 9.2, ...change }] })
  expect(leader({ seen_seconds_ago: 7.9 })).toEqual([])
  expect(leader({})).toEqual(['the leader vm a1b2c3d4 was last seen 9 s ago'])
  expect(leader({ leader: false })).toEqual([])
  expect(leader({ self: true })).toEqual([])
})

test('a channel that is down for longer than a reconnect takes', () => {
  const stream = (state: 'waiting' | 'stopped' | 'live' | 'disabled', since: number) =>
    needs({ channels: { ...STATUS.channels, stream: { ...STATUS.channels.stream, state, since } } })
  expect(stream('waiting', NOW - 9_000)).toEqual([])
  expect(stream('live', 0)).toEqual([])
  expect(stream('disabled', 0)).toEqual([])
  expect(stream('waiting', NOW - 11_000)).toMatchObject([
    {
      tone: 'bad',
      what: 'channel stream is waiting',
      detail: 'no reason given',
      advice: expect.stringMatching(/session-sidecar check/),
    },
  ])
  expect(stream('stopped', 0)).toMatchObject([{ advice: 'a new token starts it again' }])
  const down = {
    ...STATUS.channels,
    stream: { ...STATUS.channels.stream, state: 'waiting' as const, since: 0 },
  }
  expect(needs({ leader: false, channels: down })).toMatchObject([
    { what: 'channel stream is waiting', since: null, advice: 'the status of the leader shows the cause' },
  ])
})

test('replicas with another configuration, and functions without a tool', () => {
  const replica = {
    id: 'a1b2c3d4e5f6',
    name: 'vm',
    version: '1',
    self: true,
    leader: true,
    shards: 1,
    epoch: null,
    configuration: '0f',
    seen_seconds_ago: 0,
    started_at: 0,
  }
  const other = { ...replica, id: 'b', self: false, leader: false, configuration: '1e' }
  expect(texts({ replicas: [replica, { ...other, configuration: null }] })).toEqual([])
  expect(texts({ replicas: [replica, other] })).toEqual([
    'replicas with another configuration than this one: vm b',
  ])
  const lookup = { function: 'lookup', calls: 2, oldest_at: 5, advice: 'add it' }
  expect(needs({ needs_action: [lookup, { ...lookup, calls: 1 }] })).toMatchObject([
    { what: '2 calls of a function without a tool, the oldest', since: 5, advice: 'add it' },
    { what: '1 call of a function without a tool', since: 5 },
  ])
})

test('the last session slot', () => {
  const used = (used: number, limit: number | null) => texts({ slots: { used, limit } })
  expect(used(24, 25)).toEqual([])
  expect(used(25, null)).toEqual([])
  expect(used(40, 25)).toEqual([
    '40 sessions, and service.session_slots is 25: the service may refuse new ones',
  ])
})

describe('a handler', () => {
  const one = (change: object, stuck: readonly object[] = []) =>
    needs({}, { handlers: [{ ...HANDLER, ...change }], stuck: stuck as DeliveryRecord[] })

  it('that is unreachable comes before its dead letters, and both before what only waits', () => {
    const down = { state: 'down', since: 5, lastError: 'ECONNREFUSED', pending: 1, dead: 2 }
    const all = needs({ slots: { used: 1, limit: 1 } }, { handlers: [{ ...HANDLER, ...down } as never] })
    expect(all.map(({ tone, what, since, detail }) => [tone, what, since, detail])).toEqual([
      ['bad', 'handler app is unreachable', 5, 'ECONNREFUSED; 1 delivery pending'],
      ['bad', 'handler app has 2 dead letters', null, null],
      ['warn', expect.stringContaining('session_slots'), null, null],
    ])
  })

  it('that is paused, or no longer configured, with the way back', () => {
    expect(one({ state: 'paused', pending: 3 })).toMatchObject([
      { tone: 'warn', detail: '3 deliveries pending', advice: 'session-sidecar handlers resume app' },
    ])
    expect(one({ state: 'removed', pending: 3, dead: 1 })).toMatchObject([
      {
        tone: 'bad',
        what: 'handler app has 1 dead letter',
        advice: 'give a handler this name again, then: session-sidecar deliveries retry --dead --handler app',
      },
      { tone: 'warn', what: 'handler app is not configured', detail: '3 deliveries pending' },
    ])
    expect(one({ state: 'removed', dead: 1 })).toHaveLength(1)
  })

  it('that answers and does not accept, with its last answer', () => {
    const failed = (attempt: object) =>
      one({}, [
        {
          id: 'dlv_1_1',
          handler: 'app',
          attempts: [
            { at: 1, ms: 1 },
            { at: 2, ms: 1, ...attempt },
          ],
        },
      ])
    expect(failed({ status: 401 })).toMatchObject([
      {
        tone: 'bad',
        detail: 'it answered 401',
        advice: 'if it refuses the signature, give it the secret of the configuration',
      },
    ])
    // A replayed fact keeps its success.
    expect(failed({ status: 204 })).toEqual([])
    expect(failed({ error: 'no answer within 9 ms' })).toMatchObject([
      { tone: 'warn', detail: 'no answer within 9 ms', advice: 'session-sidecar deliveries show dlv_1_1' },
    ])
    expect(
      one({ state: 'paused' }, [{ id: 'x', handler: 'app', attempts: [{ at: 1, ms: 1 }] }]),
    ).toHaveLength(1)
  })
})

test('calls without an answer for a minute, and what waits for a person, each with the oldest', () => {
  const action = {
    type: 'function_call',
    name: 'a',
    sessionId: 's/1',
    turnId: 't',
    since: NOW - 61_000,
    isForeign: false,
  }
  const actions = [
    action,
    { ...action, name: 'b' },
    { ...action, name: 'c', since: NOW - 59_000 },
    { ...action, name: 'd', isForeign: true },
    { ...action, type: 'question', name: null, since: 5 },
    { ...action, type: 'approval', name: null, since: 6 },
  ]
  expect(needs({}, { actions })).toMatchObject([
    {
      what: '2 function calls without an answer, the oldest',
      detail: 'a, b',
      since: NOW - 61_000,
      page: '#/sessions/s%2F1?turn=t',
    },
    { what: '2 approvals and questions without an answer, the oldest', since: 5, page: '#/actions' },
  ])
})

describe('GET /api/attention', () => {
  let running: Running
  afterEach(() => running.stop())

  it('finds the problems in the status, the handlers, the actions and the deliveries', async () => {
    running = await startAdmin({
      async seed(store) {
        await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['turn.*'] }])
        const raw = sessionRaw('s-a', { status: 'requires_action', required_actions: [actionRaw('call_1')] })
        const turn = turnRaw('turn_1', 's-a')
        const reading = readingOf(raw, { turns: [turn], facts: [turnFact('turn.completed', turn)], at: 2000 })
        await acknowledgeFirst(store, await store.log.commit({ readings: [reading] }), 'app', 'dead')
      },
    })
    const answer = await running.get('/api/attention')
    const data = dataOf(answer) as unknown as Need[]
    expect(answer.json['object']).toBe('list')
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(['dead app', 'paused audit', 'calls']))
    expect(data.map(({ what }) => what)).toContain("the service's route for sendMessage is not known")
    const tones = data.map(({ tone }) => tone)
    expect(tones).toEqual(tones.toSorted())
  })

  it('finds a fact that a handler does not accept behind a backlog', async () => {
    running = await startAdmin({
      async seed(store) {
        await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
        const facts = Array.from({ length: 150 }, (_, at) => frameFact(String(at + 1), 's-a'))
        await acknowledgeFirst(store, await store.log.commit({ facts }), 'app', 'retry')
      },
    })
    const data = dataOf(await running.get('/api/attention'))
    expect(data.map(({ id }) => id)).toContain('refuses app')
  })
})
