import { afterEach, beforeEach, expect, it } from 'vitest'
import { startMetering, stored, type Metering } from './metering.ts'
import { actionRaw, frameFact, readingOf, sessionRaw, acknowledgeFirst, turnFact, turnRaw } from './seed.ts'

let metering: Metering

beforeEach(() => {
  metering = startMetering()
})
afterEach(() => metering.store.close())

it('counts from facts how turns and sessions ended, and how long turns took', async () => {
  const turns = [
    ['turn.completed', turnRaw('t1', 's', { artifacts: 'pending' })],
    ['turn.settled', turnRaw('t1', 's', { artifacts: 'partial' })],
    [
      'turn.failed',
      turnRaw('t2', 's', { status: 'failed', started_at: null, completed_at: 1_700_000_003_000 }),
    ],
    ['turn.ended', turnRaw('t3', 's', { status: 'cancelled', completed_at: 1 })],
    ['turn.completed', { broken: true }],
  ] as const
  for (const [type, turn] of turns) {
    metering.metrics.observer.fact(
      stored(turnFact(type, { id: 't', session_id: 's', ...turn }, { body: JSON.stringify({ turn }) })),
      null,
    )
  }
  for (const type of [
    'session.idle',
    'session.failed',
    'session.failed',
    'session.working',
    'session.created',
  ]) {
    metering.metrics.observer.fact(
      stored(turnFact(type, turnRaw('t', 's'), { body: '{"session":{}}' })),
      null,
    )
  }
  expect(await metering.valueOf('turns_total', { outcome: 'completed' })).toBe(1)
  expect(await metering.valueOf('turns_total', { outcome: 'failed' })).toBe(1)
  expect(await metering.valueOf('turns_total', { outcome: 'cancelled' })).toBe(1)
  expect(await metering.valueOf('turn_duration_seconds_sum', { outcome: 'completed' })).toBe(7)
  expect(await metering.valueOf('turn_duration_seconds_sum', { outcome: 'failed' })).toBe(3)
  expect(await metering.valueOf('turn_duration_seconds_count', { outcome: 'cancelled' })).toBeUndefined()
  expect(await metering.valueOf('turn_artifacts_total', { state: 'partial' })).toBe(1)
  expect(await metering.valueOf('session_outcomes_total', { status: 'failed' })).toBe(2)
  expect(await metering.valueOf('session_outcomes_total', { status: 'idle' })).toBe(1)
  expect(await metering.valueOf('session_outcomes_total', { status: 'working' })).toBeUndefined()
})

it('does not count a transcript fact named turn.completed as the end of a turn', async () => {
  metering.metrics.observer.fact(stored(frameFact('1', 's', { type: 'turn.completed' })), null)
  expect(await metering.valueOf('turns_total', { outcome: 'completed' })).toBe(0)
})

it('reads the current state from the store', async () => {
  await metering.store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  const waiting = sessionRaw('s-b', {
    status: 'requires_action',
    required_actions: [actionRaw('c1'), actionRaw('c2', { type: 'approval', created_at: 1_600_000_000_000 })],
  })
  await metering.store.log.commit({ readings: [readingOf(sessionRaw('s-a')), readingOf(waiting)] })
  const committed = await metering.store.log.commit({
    facts: [frameFact('1', 's-a', { at: 5000 }), frameFact('2', 's-a', { at: 7000 })],
  })
  await acknowledgeFirst(metering.store, committed, 'app', 'delivered')
  expect(await metering.valueOf('sessions', { status: 'idle' })).toBe(1)
  expect(await metering.valueOf('sessions', { status: 'requires_action' })).toBe(1)
  expect(await metering.valueOf('sessions', { status: 'failed' })).toBe(0)
  expect(await metering.valueOf('session_slots_used')).toBe(2)
  expect(await metering.valueOf('required_actions', { type: 'function_call' })).toBe(1)
  expect(await metering.valueOf('required_actions', { type: 'question' })).toBe(0)
  expect(await metering.valueOf('required_action_oldest_timestamp_seconds', { type: 'approval' })).toBe(
    1_600_000_000,
  )
  expect(
    await metering.valueOf('required_action_oldest_timestamp_seconds', { type: 'question' }),
  ).toBeUndefined()
  expect(await metering.valueOf('callback_queue_depth', { handler: 'app' })).toBe(1)
  expect(await metering.valueOf('callback_oldest_pending_timestamp_seconds', { handler: 'app' })).toBe(7)
  expect(await metering.valueOf('store_bytes')).toBeGreaterThan(4096)
})

// [fault state-2]
it('shows since when the oldest ended turn waits for its artifacts, until they are final', async () => {
  const name = 'artifact_oldest_pending_timestamp_seconds'
  const pending = (id: string, createdAt: number, settled = false) =>
    readingOf(sessionRaw(`s-${id}`), {
      turns: [turnRaw(id, `s-${id}`, { artifacts: settled ? 'ready' : 'pending', created_at: createdAt })],
      settled,
    })
  await metering.store.log.commit({ readings: [pending('old', 1000), pending('older', 500, true)] })
  await metering.store.log.commit({ readings: [pending('young', 3000)] })
  expect(await metering.valueOf(name)).toBe(1)
  await metering.store.log.commit({ readings: [{ ...pending('old', 1000, true), revision: 1 }] })
  metering.advance(1000)
  expect(await metering.valueOf(name)).toBe(3)
  await metering.store.log.commit({ readings: [{ ...pending('young', 3000, true), revision: 1 }] })
  metering.advance(1000)
  expect(await metering.valueOf(name)).toBeUndefined()
})

// [fault webhook-5]
it('shows by how much the clock of the service is ahead of ours', async () => {
  const metrics = metering.make({ clockOffset: () => -1500 })
  expect(await metering.valueOf('service_clock_offset_seconds', {}, metrics)).toBe(-1.5)
})

it('shows the age of the oldest unread hint of a channel, without reads that the sidecar planned itself', async () => {
  const hint = (sessionId: string, channel: 'stream' | 'webhook', at: number) =>
    metering.store.log.commit({ hints: [{ sessionId, channel, at, scope: 'turns', delay: 0 }] })
  expect(await metering.valueOf('read_queue_depth')).toBe(0)
  await hint('s-a', 'webhook', 9000)
  await hint('s-a', 'stream', 7000)
  await hint('s-b', 'stream', 8000)
  const planned = { claim: null, lookAfter: 0, scope: 'turns' as const }
  await metering.store.log.commit({ readings: [{ ...readingOf(sessionRaw('s-c')), hint: planned }] })
  metering.advance(1000)
  expect(await metering.valueOf('read_queue_depth')).toBe(2)
  expect(await metering.valueOf('read_oldest_pending_timestamp_seconds')).toBe(7)
  for (const entry of await metering.store.hints.claim(3)) {
    const hint = { claim: entry.claim, lookAfter: null, scope: 'turns' as const }
    await metering.store.log.commit({ readings: [{ ...readingOf(sessionRaw(entry.sessionId ?? '')), hint }] })
  }
  metering.advance(1000)
  expect(await metering.valueOf('read_oldest_pending_timestamp_seconds')).toBeUndefined()
})

it('counts dead letters until they are retried', async () => {
  await metering.store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  const committed = await metering.store.log.commit({ facts: [frameFact('1', 's-a')] })
  await acknowledgeFirst(metering.store, committed, 'app', 'dead')
  expect(await metering.valueOf('callback_dead_letters_kept', { handler: 'app' })).toBe(1)
  await metering.store.operator.retry({})
  metering.advance(1000)
  expect(await metering.valueOf('callback_dead_letters_kept', { handler: 'app' })).toBe(0)
})

it.each([
  [true, 1],
  [false, 0],
  [null, undefined],
])('shows whether the token is accepted (%s) as %s', async (accepted, value) => {
  const metrics = metering.make({ tokenAccepted: () => accepted })
  expect(await metering.valueOf('token_accepted', {}, metrics)).toBe(value)
})

it('omits unknown values', async () => {
  for (const name of [
    'stream_connected',
    'stream_seq',
    'stream_last_event_timestamp_seconds',
    'webhook_subscription_active',
    'session_slots_limit',
    'token_expiry_timestamp_seconds',
    'token_accepted',
    'read_oldest_pending_timestamp_seconds',
    'service_clock_offset_seconds',
    'artifact_oldest_pending_timestamp_seconds',
  ]) {
    expect([name, await metering.valueOf(name)]).toEqual([name, undefined])
  }
  expect(await metering.valueOf('leader')).toBe(1)
  metering.metrics.observer.channel('stream', {
    state: 'live',
    since: 1,
    lastError: null,
    lastEventAt: null,
    lastSeq: null,
  })
  metering.metrics.observer.channel('stream', {
    state: 'waiting',
    since: 2,
    lastError: 'x',
    lastEventAt: null,
    lastSeq: null,
  })
  expect(await metering.valueOf('stream_connected')).toBe(0)
})

it('shows an unreachable or paused handler as down', async () => {
  await metering.store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  expect(await metering.valueOf('handler_up', { handler: 'app' })).toBe(1)
  metering.metrics.observer.handler('app', 'down')
  expect(await metering.valueOf('handler_up', { handler: 'app' })).toBe(0)
  metering.metrics.observer.handler('app', 'up')
  await metering.store.settings.pauseHandler('app', 'paused before we were started')
  metering.advance(1000)
  expect(await metering.valueOf('handler_up', { handler: 'app' })).toBe(0)
})

it('reads the store at most once a second, and keeps working when the store cannot be read', async () => {
  let asked = 0
  let broken = false
  const counting = metering.make({
    store: () => ({
      async counts() {
        asked++
        if (broken) throw new Error('the store is closed')
        return await metering.store.read.counts()
      },
      handlers: () => metering.store.read.handlers(),
    }),
  })
  await Promise.all([counting.scrape(), counting.scrape()])
  metering.advance(999)
  await counting.scrape()
  expect(asked).toBe(1)
  metering.advance(1)
  broken = true
  expect(await metering.valueOf('store_bytes', {}, counting)).toBeUndefined()
  expect(await metering.valueOf('leader', {}, counting)).toBe(1)
  expect(await metering.valueOf('store_readable', {}, counting)).toBe(0)
  // What is not known is not zero, nor up.
  for (const name of ['sessions', 'required_actions', 'handler_up', 'callback_queue_depth'])
    expect([name, await metering.valueOf(name, {}, counting)]).toEqual([name, undefined])
  expect(metering.log.lines.at(-1)).toMatchObject({
    level: 'warn',
    details: { reason: 'the store is closed' },
  })
  expect(asked).toBe(2)
})
