import { describe, expect } from 'vitest'
import { FIRST_LOOK } from '../../src/core/checkpoint.ts'
import { forgetCursor } from '../../src/sidecar/source/cursor.ts'
import { newCall } from '../../src/core/call.ts'
import type { Reading } from '../../src/core/store.ts'
import { readAction, readSession, readTurn } from '../../src/core/wire.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { everything, openStore } from './database.ts'
import { it } from './engines.ts'
import { acknowledge, ack } from './lane.ts'
import { readingOf } from './reading.ts'

const all = { limit: 10_000, order: 'asc' } as const
const known = {
  read: true,
  final: true,
  settled: true,
  endedFrameAt: null,
  finalFor: null,
  finalFact: true,
}

const call = newCall({
  callId: 'call_1',
  sessionId: 'ses_1',
  turnId: 'trn_1',
  name: 'lookup',
  action: {},
  createdAt: 5,
  expiresAt: null,
  receivedAt: 7,
})

const reading = (revision: number | null, more: Partial<Reading> = {}): Reading =>
  readingOf('ses_1', {
    revision,
    session: readSession({ id: 'ses_1', status: 'idle', updated_at: 1 }, () => undefined),
    ...more,
  })

describe('retention', () => {
  const DAY = 86_400_000

  it('removes old delivered facts, and no pending, dead or recent ones', async () => {
    const { store, clock } = await openStore()
    const { lanes } = await store.log.commit({
      facts: [1, 2, 3].map((seq) => frameFact(seq, `ses_${seq}`, { at: clock.now() })),
    })
    const [first, second] = lanes
    if (first === undefined || second === undefined) throw new Error('no lanes')
    const attempt = { at: clock.now(), status: 200, ms: 1 }
    await acknowledge(store, () => [
      {
        lane: first.lane,
        pos: first.deliveries[0]?.fact.pos ?? 0,
        result: 'delivered',
        attempts: 1,
        attempt,
        after: null,
      },
      {
        lane: second.lane,
        pos: second.deliveries[0]?.fact.pos ?? 0,
        result: 'dead',
        attempts: 1,
        attempt,
        after: null,
      },
    ])
    await clock.leap(8 * DAY)
    await store.log.commit({ facts: [frameFact(4, 'ses_4', { at: clock.now() })] })
    expect(await store.log.prune(7 * DAY)).toEqual({ facts: 1, more: false })
    expect((await store.read.facts(all)).rows.map(({ seq }) => seq)).toEqual(['2', '3', '4'])
    expect(await store.log.prune(7 * DAY)).toEqual({ facts: 0, more: false })
  })

  it('does not deliver again what a full replay brings back after it was removed', async () => {
    const { store } = await openStore({}, [])
    await store.log.commit({ facts: [1, 2, 3].map((seq) => frameFact(seq)), cursor: '3' })
    expect(await store.log.prune(-1)).toMatchObject({ facts: 3 })
    await store.settings.registerHandlers([everything('app')])
    const { facts, lanes } = await store.log.commit({
      facts: [1, 2, 3, 4].map((seq) => frameFact(seq)),
      cursor: '4',
    })
    expect(facts.map(({ seq }) => seq)).toEqual(['4'])
    expect(lanes.flatMap(({ deliveries }) => deliveries.map(({ fact }) => fact.seq))).toEqual(['4'])
  })

  it('never gives a position in the log twice', async () => {
    const { store } = await openStore({}, [])
    const { facts } = await store.log.commit({ facts: [frameFact(1), frameFact(2)] })
    await store.log.prune(-1)
    const later = await store.log.commit({ facts: [frameFact(3)] })
    expect(later.facts[0]?.pos).toBeGreaterThan(facts[1]?.pos ?? Infinity)
  })

  it('removes more facts than one step reads, in several steps', async () => {
    const { store } = await openStore({}, [])
    await store.log.commit({ facts: Array.from({ length: 1100 }, (_, index) => frameFact(index + 1)) })
    const steps = []
    for (let step = 0; step < 3; step++) steps.push(await store.log.prune(-1))
    expect(steps).toEqual([
      { facts: 500, more: true },
      { facts: 500, more: true },
      { facts: 100, more: false },
    ])
    expect((await store.read.facts(all)).rows).toEqual([])
  })

  it('removes what is old behind what was stored while the clock was ahead, and keeps that until its time', async () => {
    const { store, clock } = await openStore({}, [])
    const year = 365 * 86_400_000
    await store.log.commit({
      facts: [frameFact(1, 'ses_1', { at: clock.now() + year }), frameFact(2), frameFact(3)],
    })
    expect(await store.log.prune(-1)).toEqual({ facts: 2, more: false })
    expect((await store.read.facts(all)).rows.map(({ seq }) => seq)).toEqual(['1'])
  })

  it('treats a lower seq as new once the cursor was removed, even if facts are pruned afterwards', async () => {
    const { store } = await openStore({}, [])
    await store.log.commit({ facts: [frameFact(900)], cursor: '900' })
    await store.log.prune(-1)
    await store.log.commit({ facts: [frameFact(1000)], cursor: '1000' })
    expect((await store.log.commit({ facts: [frameFact(7)] })).facts).toEqual([])
    await forgetCursor(store)
    expect((await store.log.commit({ facts: [frameFact(7)], cursor: '7' })).facts).toHaveLength(1)
    // 1000 goes as well, and was of the count before.
    expect(await store.log.prune(-1)).toEqual({ facts: 2, more: false })
    const { facts } = await store.log.commit({ facts: [frameFact(7), frameFact(8)], cursor: '8' })
    expect(facts.map(({ seq }) => seq)).toEqual(['8'])
  })

  it('removes expired rows of all other tables, in any number', async () => {
    const { store, clock } = await openStore()
    const many = Array.from({ length: 1100 }, (_, index) => String(index))
    await store.log.commit({
      newCalls: many.map((callId) => ({ ...call, callId, state: 'answered' as const, endedAt: clock.now() })),
      readings: [
        reading(null, {
          turns: many.map((id) => ({ ...known, turn: readTurn({ id, status: 'completed' }, 'ses_1') })),
          opened: many.map((id) => readAction({ type: 'function_call', call_id: id, name: 'lookup' })),
        }),
      ],
      checkpoint: { name: 'items/ses_1', to: 'itm_9' },
    })
    const { lanes } = await store.log.commit({
      facts: many.map((id) => frameFact(1 + Number(id), `ses_${id}`)),
    })
    await acknowledge(store, () =>
      lanes.flatMap(({ lane, deliveries }) => deliveries.map((delivery) => ack(lane, delivery, 'delivered'))),
    )
    for (const { lane } of lanes) await store.lanes.release(lane)
    await store.log.commit({ readings: [reading(1, { session: null, resolved: many, at: clock.now() })] })
    let steps = 1
    while ((await store.log.prune(-1)).more) steps++
    expect(steps).toBeGreaterThan(2)
    expect(await store.resources.known('ses_1')).toBeNull()
    expect(await store.resources.knownTurns('ses_1', many)).toEqual([])
    expect(await store.calls.get('7')).toBeNull()
    expect(await store.settings.checkpoint('items/ses_1')).toBeNull()
    expect((await store.read.facts(all)).rows).toEqual([])
    // Its lane is another one now.
    const again = await store.log.commit({ facts: [frameFact(2000, 'ses_7')] })
    expect(again.lanes[0]?.lane.id).toBeGreaterThan(lanes.length)
  })

  // Found by reading: a call that the service refuses stays required, and has no deadline unless the tool names one.
  it('keeps a call while its session requires its action: it would be taken for a new one, and run again', async () => {
    const { store, clock } = await openStore()
    const action = readAction({ type: 'function_call', call_id: 'call_1', name: 'lookup' })
    await store.log.commit({ readings: [reading(null, { opened: [action], newCalls: [call] })] })
    await store.log.commit({
      calls: [
        { callId: 'call_1', event: { type: 'failed', outcome: 'expired', error: null, at: clock.now() } },
      ],
    })
    await clock.leap(30 * DAY)
    await store.log.prune(0)
    expect((await store.log.commit({ readings: [reading(1, { newCalls: [call] })] })).newCalls).toEqual([])
    await store.log.commit({ readings: [reading(2, { resolved: ['call_1'] })] })
    await store.log.prune(0)
    expect(await store.calls.get('call_1')).toBeNull()
  })
})

describe('a sighting', () => {
  // All facts after it were reported when that time had come.
  it('is missed behind a fact that was stored while our clock was ahead', async () => {
    const { store, clock } = await openStore()
    const ahead = turnFact('turn.completed', 'trn_1', 'ses_1', {
      at: clock.now() + 86_400_000,
      seen: { poll: 1 },
    })
    const right = turnFact('turn.completed', 'trn_2', 'ses_1', { at: clock.now(), seen: { poll: 1 } })
    await store.log.commit({ facts: [ahead, right] })
    const expected = { webhook: new Set(['turn.completed']) }
    const { missed } = await store.log.missed(expected, -1)
    expect(missed).toHaveLength(2)
  })

  it('is missed if a channel never reported a fact: each once and not before its time', async () => {
    const { store, clock } = await openStore()
    const expected = {
      stream: new Set(['turn.completed']),
      webhook: new Set(['turn.completed', 'turn.started']),
    }
    await store.log.commit({
      facts: [turnFact('turn.completed', 'trn_1', 'ses_1', { at: clock.now(), seen: { stream: 1 } })],
    })
    expect(await store.log.missed(expected, 0)).toEqual({ missed: [], more: false })
    expect(await store.log.missed(expected, -1)).toEqual({
      missed: [{ channel: 'webhook', type: 'turn.completed' }],
      more: false,
    })
    expect(await store.log.missed(expected, -1)).toEqual({ missed: [], more: false })
  })

  it('is not missed in facts of the first read: no channel could have reported them', async () => {
    const { store, clock } = await openStore()
    const expected = { stream: new Set(['turn.started', 'turn.completed']) }
    await store.log.commit({
      facts: [turnFact('turn.started', 'trn_1', 'ses_1', { at: clock.now(), seen: { poll: 1 } })],
    })
    await store.settings.setCheckpoint(FIRST_LOOK, String(clock.now()))
    await clock.leap(1)
    await store.log.commit({
      facts: [turnFact('turn.completed', 'trn_1', 'ses_1', { at: clock.now(), seen: { poll: 1 } })],
    })
    expect(await store.log.missed(expected, -1)).toEqual({
      missed: [{ channel: 'stream', type: 'turn.completed' }],
      more: false,
    })
  })

  it('is found step by step, over facts of every kind', async () => {
    const { store } = await openStore()
    const expected = { stream: new Set(['turn.completed']) }
    const frames = Array.from({ length: 2000 }, (_, index) => frameFact(index + 1))
    await store.log.commit({ facts: [...frames, turnFact('turn.completed', 'trn_1')] })
    expect(await store.log.missed(expected, -1)).toEqual({ missed: [], more: true })
    expect(await store.log.missed(expected, -1)).toEqual({
      missed: [{ channel: 'stream', type: 'turn.completed' }],
      more: false,
    })
  })
})
