import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { CallRoom } from '../../src/core/call.ts'
import type { CallStep } from '../../src/core/call-machine.ts'
import type { Hint } from '../../src/core/hint.ts'
import type { HintClaim, Reading } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { lookupCall } from './call.ts'
import { folder, openStore } from './database.ts'
import { it } from './engines.ts'
import { ack, acknowledge, laneOf, read } from './lane.ts'
import { readingOf } from './reading.ts'

const hint = (sessionId: string | null): Hint => ({
  sessionId,
  channel: 'stream',
  at: 100,
  scope: 'session',
  delay: 0,
})

const gone = (sessionId: string, claim: HintClaim): Reading =>
  readingOf(sessionId, {
    facts: [frameFact(2, sessionId)],
    hint: { claim, lookAfter: null, scope: 'session' },
  })

const ROOM: CallRoom = { others: 9, of: () => 9 }
const CALL = lookupCall()

/** What a former owner had claimed, and the store of the owner after it. */
async function takenOver() {
  const path = join(folder(), 'sidecar.db')
  const before = await openStore({ path })
  const { lanes } = await before.store.log.commit({
    facts: [frameFact(1)],
    newCalls: [CALL],
    hints: [hint(null), hint('ses_1')],
  })
  const [sweep, session] = await before.store.hints.claim(2)
  const [lane] = lanes
  const [call] = await before.store.calls.claim(ROOM)
  const [delivery] = lane?.deliveries ?? []
  if (
    lane === undefined ||
    delivery === undefined ||
    sweep === undefined ||
    session === undefined ||
    call === undefined
  )
    throw new Error('nothing was claimed')
  await before.store.close()
  const { store } = await openStore({ path })
  return { store, former: { lane: lane.lane, delivery, sweep, session, call } }
}

describe('a claim of a former owner', () => {
  it('of a lane is acknowledged by the next owner only', async () => {
    const { store, former } = await takenOver()
    await acknowledge(store, () => [ack(former.lane, former.delivery, 'delivered')])
    await store.lanes.retry(former.lane, 60_000)
    expect(await store.lanes.nextDue('app')).toBe(0)
    const lane = await laneOf(store)
    expect(lane).toMatchObject({ id: former.lane.id })
    expect(lane.lease.epoch).toBeGreaterThan(former.lane.lease.epoch)
    await store.lanes.release(former.lane)
    expect(await store.lanes.claim({ handler: 'app', lanes: 1 })).toEqual([])
    const pending = await read(store, lane)
    expect(pending).toMatchObject([{ attempts: 0 }])
    await acknowledge(store, () => pending.map((delivery) => ack(lane, delivery, 'delivered')))
    expect(await read(store, lane)).toEqual([])
  })

  it('of a hint is acknowledged by the next owner only, and the snapshot of the former is not stored', async () => {
    const { store, former } = await takenOver()
    const { session, sweep } = former
    const committed = await store.log.commit({ readings: [gone('ses_1', session.claim)] })
    expect(committed).toMatchObject({ stale: ['ses_1'], facts: [] })
    await store.hints.retry(session, 60_000)
    await store.hints.defer(session, 60_000)
    await store.hints.finishSweep(sweep)
    const claimed = await store.hints.claim(2)
    expect(claimed).toMatchObject([
      { sessionId: null, failures: 0 },
      { sessionId: 'ses_1', failures: 0 },
    ])
    await store.hints.release(session)
    await store.hints.release(sweep)
    expect(await store.hints.claim(2)).toEqual([])
  })

  it('of a call is continued by the next owner only; a late answer of its app needs no claim', async () => {
    const { store, former } = await takenOver()
    const step = async (one: CallStep): Promise<readonly string[]> =>
      (await store.log.commit({ calls: [one] })).refused
    const begun: CallStep = { callId: 'call_1', event: { type: 'run_begun', at: 2 } }
    expect(await step({ ...begun, lease: former.call.lease })).toEqual(['call_1'])
    expect(await store.calls.get('call_1')).toMatchObject({ state: 'received', attempts: 0 })
    const [claimed] = await store.calls.claim(ROOM)
    await store.calls.release('call_1', former.call.lease)
    expect(await store.calls.claim(ROOM)).toEqual([])
    expect(claimed?.lease.epoch).toBeGreaterThan(former.call.lease.epoch)
    expect(await step({ ...begun, ...(claimed && { lease: claimed.lease }) })).toEqual([])
    const result = { kind: 'output', text: '42' } as const
    expect(await step({ callId: 'call_1', event: { type: 'app_answered', result, at: 3 } })).toEqual([])
  })
})
