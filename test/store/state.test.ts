import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { newCall, type Call, type CallRoom, type ClaimedCall } from '../../src/core/call.ts'
import type { Hint } from '../../src/core/hint.ts'
import type { HintedSession, Reading, Store } from '../../src/core/store.ts'
import { readAction, readSession, readTurn } from '../../src/core/wire.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { migrate } from '../../src/sidecar/store/sqlite/schema.ts'
import { folder, openStore } from './database.ts'
import { it, tablesOf } from './engines.ts'
import { readingOf } from './reading.ts'

const hint = (more: Partial<Hint> = {}): Hint => ({
  sessionId: 'ses_1',
  channel: 'stream',
  at: 100,
  scope: 'session',
  delay: 0,
  ...more,
})

const reading = (revision: number | null, more: Partial<Reading> = {}): Reading =>
  readingOf('ses_1', {
    revision,
    session: readSession({ id: 'ses_1', status: 'idle', updated_at: 1, title: 'One' }, () => undefined),
    ...more,
  })

const call: Call = newCall({
  callId: 'call_1',
  sessionId: 'ses_1',
  turnId: 'trn_1',
  name: 'lookup',
  action: { arguments: { order: 1 } },
  createdAt: 5,
  expiresAt: null,
  receivedAt: 7,
})

async function claimOne(store: Store): Promise<HintedSession> {
  const [claimed] = await store.hints.claim(1)
  if (claimed === undefined) throw new Error('no hint is due')
  return claimed
}

async function release(store: Store, hint: HintedSession | undefined): Promise<void> {
  if (hint !== undefined) await store.hints.release(hint)
}

/** For calls of each kind. */
const room = (most: number): CallRoom => ({ others: most, of: () => most })

describe('hints', () => {
  it('of one session are merged: the earliest time, the wider scope and the first of each channel', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({
      hints: [
        hint({ delay: 500 }),
        hint({ channel: 'webhook', at: 200, scope: 'artifacts', delay: 100 }),
        hint({ at: 300, delay: 900 }),
      ],
    })
    await clock.advance(99)
    expect(await store.hints.claim(10)).toEqual([])
    await clock.advance(1)
    const dirty = await store.hints.claim(10)
    expect(dirty).toMatchObject([
      { sessionId: 'ses_1', scope: 'turns', seen: { stream: 100, webhook: 200 }, failures: 0 },
    ])
  })

  it('are claimed by one reader at a time, oldest first', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({
      hints: [
        hint({ sessionId: 'ses_2', delay: 20 }),
        hint({ delay: 10 }),
        hint({ sessionId: null, delay: 30 }),
      ],
    })
    await clock.advance(30)
    const first = await store.hints.claim(2)
    expect(first.map(({ sessionId }) => sessionId)).toEqual(['ses_1', 'ses_2'])
    expect((await store.hints.claim(2)).map(({ sessionId }) => sessionId)).toEqual([null])
    expect(await store.hints.nextDue()).toBeNull()
    await release(store, first[1])
    expect((await store.hints.claim(2)).map(({ sessionId }) => sessionId)).toEqual(['ses_2'])
  })

  it('that come while a session is read keep it dirty', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint()] })
    const [first] = await store.hints.claim(1)
    await store.log.commit({ hints: [hint()] })
    await store.log.commit({
      readings: [reading(null, { hint: { claim: first?.claim ?? null, lookAfter: null, scope: 'session' } })],
    })
    await release(store, first)
    const [second] = await store.hints.claim(1)
    expect(second?.claim.generation).toBeGreaterThan(first?.claim.generation ?? Infinity)
    await store.log.commit({
      readings: [reading(1, { hint: { claim: second?.claim ?? null, lookAfter: null, scope: 'session' } })],
    })
    await release(store, second)
    expect(await store.hints.nextDue()).toBeNull()
  })

  it('that a reading answered are gone, however many come while it lasts: only what came since is left', async () => {
    const { store, clock } = await openStore()
    const claimed = async () => {
      await clock.advance(1000)
      return (await store.hints.claim(1))[0]
    }
    const read = async (revision: number | null, hinted: HintedSession | undefined) => {
      const done = { claim: hinted?.claim ?? null, lookAfter: null, scope: 'session' } as const
      await store.log.commit({ readings: [reading(revision, { hint: done })] })
      await release(store, hinted)
    }
    await store.log.commit({ hints: [hint({ at: 100, scope: 'turns' })] })
    const first = await claimed()
    await store.log.commit({
      hints: [hint({ at: 200, channel: 'webhook', delay: 500 }), hint({ at: 300, delay: 700 })],
    })
    expect((await store.read.counts()).unread).toEqual({ count: 1, oldest: 100 })
    await read(null, first)
    expect((await store.read.counts()).unread).toEqual({ count: 1, oldest: 200 })
    expect(await store.hints.nextDue()).toBe(500)
    const second = await claimed()
    expect(second).toMatchObject({ scope: 'session', seen: { webhook: 200, stream: 300 } })
    await store.log.commit({ hints: [hint({ at: 400, scope: 'artifacts' })] })
    await read(1, second)
    expect(await claimed()).toMatchObject({ scope: 'artifacts', seen: { stream: 400 } })
  })

  it('that came while a reading failed are answered with those before', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint({ at: 100, scope: 'turns' })] })
    const claimed = await claimOne(store)
    await store.log.commit({ hints: [hint({ at: 200, channel: 'webhook' })] })
    await store.hints.retry(claimed, 0)
    const again = await store.hints.claim(1)
    expect(again).toMatchObject([{ scope: 'turns', seen: { stream: 100, webhook: 200 }, failures: 1 }])
  })

  it('of a reading that failed are due later, and count', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({ hints: [hint()] })
    const claimed = await claimOne(store)
    await store.hints.retry(claimed, 1000)
    await clock.advance(999)
    expect(await store.hints.claim(1)).toEqual([])
    await clock.advance(1)
    expect(await store.hints.claim(1)).toMatchObject([{ failures: 1 }])
  })

  it('of given sessions are left out', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint({ sessionId: 'ses_1' }), hint({ sessionId: 'ses_2' })] })
    const except = new Set(['ses_1', 'ses_7'])
    expect(await store.hints.claim(2, except)).toMatchObject([{ sessionId: 'ses_2' }])
    expect(await store.hints.claim(2, except)).toEqual([])
    expect([await store.hints.nextDue(except), await store.hints.nextDue()]).toEqual([null, 0])
    expect(await store.hints.claim(2)).toMatchObject([{ sessionId: 'ses_1' }])
  })

  it('of a reading that has to be made again are due later, and count as no failure', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({ hints: [hint({ scope: 'turns' })] })
    const claimed = await claimOne(store)
    await store.hints.defer(claimed, 1000)
    await clock.advance(999)
    expect(await store.hints.claim(1)).toEqual([])
    await clock.advance(1)
    expect(await store.hints.claim(1)).toMatchObject([{ scope: 'turns', failures: 0 }])
  })

  it('that came while a reading found that it has to be made again do not wait for it', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({ hints: [hint({ scope: 'turns', channel: 'webhook' })] })
    const claimed = await claimOne(store)
    await store.log.commit({ hints: [hint({ scope: 'session', channel: 'stream' })] })
    await store.hints.defer(claimed, 2000)
    const again = await store.hints.claim(1)
    expect(again).toMatchObject([{ scope: 'turns', failures: 0 }])
    await store.hints.defer(claimed, 2000)
    await clock.advance(1999)
    expect(await store.hints.claim(1)).toEqual([])
  })

  it('that a reading made for a later look can be deferred', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint()] })
    const claimed = await claimOne(store)
    await store.log.commit({
      readings: [reading(null, { hint: { claim: claimed.claim, lookAfter: 700, scope: 'session' } })],
    })
    await store.hints.defer(claimed, 2000)
    await release(store, claimed)
    expect(await store.hints.nextDue()).toBe(2000)
  })

  it('that a held frame made while its session is read can be deferred', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint()] })
    const claimed = await claimOne(store)
    await store.log.commit({
      readings: [reading(null, { hint: { claim: claimed.claim, lookAfter: null, scope: 'session' } })],
    })
    await store.log.commit({ facts: [frameFact(1, 'ses_1')], scoped: true })
    await store.hints.defer(claimed, 2000)
    await release(store, claimed)
    expect(await store.hints.nextDue()).toBe(2000)
  })

  it('of a session that an earlier process hinted at can be deferred after a reading', async () => {
    const path = join(folder(), 'store.db')
    const before = await openStore({ path })
    await before.store.log.commit({ hints: [hint()] })
    await before.store.close()
    const { store } = await openStore({ path })
    await store.log.commit({ hints: [hint({ channel: 'webhook' })] })
    const claimed = await claimOne(store)
    await store.log.commit({
      readings: [reading(null, { hint: { claim: claimed.claim, lookAfter: 700, scope: 'session' } })],
    })
    await store.hints.defer(claimed, 2000)
    await release(store, claimed)
    expect(await store.hints.nextDue()).toBe(2000)
  })

  it('for a sweep stay when another hint came meanwhile', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint({ sessionId: null })] })
    const [first] = await store.hints.claim(1)
    await store.log.commit({ hints: [hint({ sessionId: null })] })
    if (first !== undefined) await store.hints.finishSweep(first)
    const [second] = await store.hints.claim(1)
    if (second !== undefined) await store.hints.finishSweep(second)
    expect(await store.hints.nextDue()).toBeNull()
  })

  it('for a complete sweep are not repeated by smaller ones that come meanwhile', async () => {
    const { store } = await openStore()
    const claimed = async () => (await store.hints.claim(1))[0]
    await store.log.commit({ hints: [hint({ sessionId: null, scope: 'turns' })] })
    const whole = await claimed()
    await store.log.commit({ hints: [hint({ sessionId: null, scope: 'session' })] })
    if (whole !== undefined) await store.hints.finishSweep(whole)
    const small = await claimed()
    expect([whole?.scope, small?.scope]).toEqual(['turns', 'session'])
    await store.log.commit({ hints: [hint({ sessionId: null, scope: 'turns' })] })
    if (small !== undefined) await store.hints.finishSweep(small)
    expect(await claimed()).toMatchObject({ scope: 'turns' })
  })

  it('can be requested for later by the reading itself', async () => {
    const { store, clock } = await openStore()
    await store.log.commit({
      readings: [reading(null, { hint: { claim: null, lookAfter: 700.5, scope: 'artifacts' } })],
    })
    expect(await store.hints.nextDue()).toBe(701)
    await clock.advance(701)
    expect(await store.hints.claim(1)).toMatchObject([{ scope: 'artifacts' }])
  })
})

describe('a reading', () => {
  it.file('without anything new does not wait for the disk, and one with a fact does', async () => {
    const { store } = await openStore()
    const pragma = vi.spyOn(Database.prototype, 'pragma')
    onTestFinished(() => pragma.mockRestore())
    const isRelaxed = async (made: Reading): Promise<boolean> => {
      pragma.mockClear()
      await store.log.commit({ readings: [made] })
      return pragma.mock.calls.some(([text]) => text === 'synchronous = NORMAL')
    }
    await store.log.commit({ hints: [hint()] })
    const { claim } = await claimOne(store)
    const answered = { claim, lookAfter: null, scope: 'session' } as const
    expect(await isRelaxed(reading(null, { hint: answered }))).toBe(true)
    expect(await isRelaxed(reading(1, { hint: { ...answered, claim: null } }))).toBe(false)
    const fact = turnFact('turn.completed', 'trn_1')
    expect(await isRelaxed(reading(2, { hint: answered, facts: [fact] }))).toBe(false)
    expect(await isRelaxed(reading(3, { hint: answered, session: null }))).toBe(false)
  })

  it('made from something older than what we know writes nothing', async () => {
    const { store } = await openStore()
    expect((await store.log.commit({ readings: [reading(null)] })).stale).toEqual([])
    const late = reading(null, { facts: [turnFact('turn.completed', 'trn_1')], newCalls: [call] })
    const committed = await store.log.commit({ readings: [late] })
    expect(committed).toMatchObject({ stale: ['ses_1'], facts: [], newCalls: [] })
    expect(await store.calls.get('call_1')).toBeNull()
    expect((await store.resources.known('ses_1'))?.revision).toBe(1)
    expect((await store.log.commit({ readings: [{ ...late, revision: 1 }] })).facts).toHaveLength(1)
  })

  // [fault tool-7]
  it('that takes long does not make a turn final for a shorter time', async () => {
    const { store, clock } = await openStore()
    const turn = readTurn(
      { id: 'trn_1', status: 'completed', completed_at: 1, artifacts: 'pending' },
      'ses_1',
    )
    const turnFinalFor = (finalFor: number) => ({
      turns: [
        { turn, read: true, final: true, settled: false, endedFrameAt: null, finalFor, finalFact: true },
      ],
    })
    await store.log.commit({ readings: [reading(null, turnFinalFor(0))] })
    await clock.advance(1000)
    const known = await store.resources.known('ses_1')
    // The request takes half a second.
    await clock.advance(500)
    await store.log.commit({
      readings: [reading(known?.revision ?? null, turnFinalFor(known?.turns[0]?.finalFor ?? 0))],
    })
    expect((await store.resources.known('ses_1'))?.turns[0]?.finalFor).toBe(1500)
  })

  it('opens and resolves actions, and takes a call on once', async () => {
    const { store } = await openStore()
    const action = readAction({ type: 'function_call', call_id: 'call_1', name: 'lookup' })
    const first = await store.log.commit({
      readings: [reading(null, { opened: [action], newCalls: [call] })],
    })
    expect(first.newCalls).toEqual([{ callId: 'call_1', lease: null }])
    expect((await store.resources.known('ses_1'))?.actions.map(({ callId }) => callId)).toEqual(['call_1'])
    const second = await store.log.commit({
      readings: [reading(1, { newCalls: [call], resolved: ['call_1'] })],
    })
    expect(second.newCalls).toEqual([])
    expect((await store.resources.known('ses_1'))?.actions).toEqual([])
  })

  it('makes the calls due that wait for their app and are not required, though no reading knew their actions', async () => {
    const { store } = await openStore()
    const calls = ['call_1', 'call_2'].map((callId) => ({ ...call, callId, deferred: true }))
    const others = [
      { ...call, callId: 'call_3' },
      { ...call, callId: 'call_4', sessionId: 'ses_2', deferred: true },
    ]
    const newCalls = [...calls, ...others]
    await store.log.commit({
      newCalls,
      calls: newCalls.map(({ callId }) => ({ callId, event: { type: 'postponed' }, after: 9000 })),
    })
    const action = { type: 'function_call', call_id: 'call_2', name: 'lookup' }
    const raw = { id: 'ses_1', status: 'requires_action', updated_at: 1, required_actions: [action] }
    const session = readSession(raw, () => undefined)
    await store.log.commit({ readings: [reading(null, { session })] })
    const due = await store.calls.claim(room(10))
    expect(due.map(({ call }) => call.callId)).toEqual(['call_1'])
    // The session is known now, and waits for nothing.
    await store.log.commit({ readings: [reading(1)] })
    expect((await store.calls.claim(room(10))).map(({ call }) => call.callId)).toEqual(['call_2'])
  })

  it('stores ids and a status of the greatest length', async () => {
    const { store } = await openStore()
    // Random, because an index compresses a text that repeats.
    const [id, turnId, callId, status] = Array.from({ length: 4 }, () =>
      randomBytes(499).toString('hex'),
    ) as [string, string, string, string]
    const raw = { id, status, updated_at: 1, required_actions: [{ type: 'question', call_id: callId }] }
    const session = readSession(raw, () => undefined)
    const turn = readTurn({ id: turnId, status: 'running' }, id)
    const known = {
      turn,
      read: true,
      final: false,
      settled: false,
      endedFrameAt: null,
      finalFor: null,
      finalFact: false,
    }
    const subject = `action.required/${callId}`
    await store.log.commit({
      hints: [{ sessionId: id, channel: 'stream', at: 1, scope: 'turns', delay: 0, subject }],
    })
    await store.log.commit({
      readings: [readingOf(id, { session, turns: [known], opened: session.actions })],
      newCalls: [{ ...call, callId, sessionId: id }],
      facts: [frameFact(1, id, { turnId }), frameFact(2, id, { subject })],
      cursor: '2',
    })
    expect(await store.resources.known(id, [turnId])).toMatchObject({
      session: { status },
      turns: [{ turn: { id: turnId } }],
    })
    expect((await store.read.facts({ sessionId: id, limit: 9, order: 'asc' })).rows).toHaveLength(2)
  })

  it('of a deleted session keeps its stored state, as deleted and idle', async () => {
    const { store } = await openStore()
    await store.log.commit({ readings: [reading(null, { atRest: false })] })
    expect(await store.resources.count()).toEqual({ alive: 1, active: 1, foreign: 0 })
    await store.log.commit({ readings: [reading(1, { session: null })] })
    expect(await store.resources.count()).toEqual({ alive: 0, active: 0, foreign: 0 })
    expect((await store.resources.glance(['ses_1'])).get('ses_1')).toMatchObject({
      deleted: true,
      atRest: true,
    })
    expect(await store.resources.summary('ses_1')).toMatchObject({ title: 'One' })
    const listed = async (status?: string): Promise<string[]> =>
      (await store.read.sessions({ limit: 10, status })).rows.map(({ session: { id } }) => id)
    expect(await listed()).toEqual(['ses_1'])
    expect(await listed('deleted')).toEqual(['ses_1'])
    expect(await listed('idle')).toEqual([])
  })
})

describe('the ledger of calls', () => {
  async function known() {
    const opened = await openStore()
    await opened.store.log.commit({ readings: [reading(null, { newCalls: [call] })] })
    return opened
  }

  it('stores a call unchanged', async () => {
    const { store } = await known()
    expect(await store.calls.get('call_1')).toEqual(call)
  })

  it('refuses a step for which there is no arrow, and the facts that hang on it', async () => {
    const { store } = await known()
    const facts = [turnFact('call.answered', 'call_1', 'ses_1', { subject: null })]
    const answered = { type: 'answered', outcome: 'delivered', error: null, at: 9 } as const
    const wrong = { callId: 'call_1', event: answered, facts }
    expect(await store.log.commit({ calls: [wrong] })).toMatchObject({ refused: ['call_1'], facts: [] })
    expect(await store.calls.get('call_1')).toEqual(call)
    expect(await store.log.commit({ calls: [{ ...wrong, callId: 'call_9' }] })).toMatchObject({
      refused: ['call_9'],
    })
    const failed = { type: 'failed', outcome: 'expired', error: null, at: 9 } as const
    const right = { ...wrong, event: failed }
    expect(await store.log.commit({ calls: [right] })).toMatchObject({
      refused: [],
      facts: [{ type: 'call.answered' }],
    })
    expect(await store.log.commit({ calls: [right] })).toMatchObject({ refused: ['call_1'], facts: [] })
  })

  it('lets one of two steps from the same state through, also in one transaction', async () => {
    const { store } = await known()
    const begin = { callId: 'call_1', event: { type: 'run_begun', at: 9 } } as const
    const [one, two] = await Promise.all([
      store.log.commit({ calls: [begin] }),
      store.log.commit({ calls: [begin] }),
    ])
    expect([one.refused, two.refused]).toEqual([[], ['call_1']])
    expect((await store.calls.get('call_1'))?.attempts).toBe(1)
  })

  it('hands a call to one taker while it is due and open', async () => {
    const { store, clock } = await known()
    expect(await store.calls.claim(room(0))).toEqual([])
    const [claimed] = await store.calls.claim(room(5))
    if (claimed === undefined) throw new Error('no call is due')
    expect(await store.calls.claim(room(5))).toEqual([])
    expect(await store.calls.nextDue(room(1))).toBeNull()
    await store.log.commit({ calls: [{ callId: 'call_1', event: { type: 'postponed' }, after: 10 }] })
    await store.calls.release('call_1', claimed.lease)
    expect(await store.calls.claim(room(5))).toEqual([])
    expect(await store.calls.nextDue(room(1))).toBe(10)
    await store.log.commit({
      calls: [{ callId: 'call_1', event: { type: 'failed', outcome: 'expired', error: null, at: 1 } }],
    })
    await clock.advance(10)
    expect(await store.calls.claim(room(5))).toEqual([])
  })

  it('hands out no more calls of a tool than it has room for, and whatever waits for no run beside them', async () => {
    const { store } = await openStore()
    const wait = (name: string, count: number): Call[] =>
      Array.from({ length: count }, (_, n) => ({ ...call, callId: `${name}_${n}`, name }))
    await store.log.commit({ newCalls: [...wait('busy', 9), ...wait('quick', 9), ...wait('removed', 2)] })
    await store.log.commit({
      calls: ['busy_7', 'busy_8'].map((callId) => ({
        callId,
        event: { type: 'result_fixed', result: { kind: 'output', text: '42' }, error: null, at: 9 },
      })),
    })
    const rooms: Record<string, number> = { busy: 0, quick: 2 }
    const tight = { others: 1, of: (name: string) => rooms[name] ?? 1 }
    const namesOf = (calls: readonly ClaimedCall[]) =>
      calls.map(({ call: { callId } }) => callId.split('_')[0])
    expect(namesOf(await store.calls.claim(tight))).toEqual(['busy', 'quick', 'quick', 'removed'])
    expect(await store.calls.nextDue({ others: 0, of: (name) => (name === 'busy' ? -1 : 0) })).toBeNull()
    expect(await store.calls.nextDue(tight)).toBe(0)
    rooms['busy'] = 3
    const next = await store.calls.claim({ ...tight, others: 0 })
    expect(namesOf(next)).toEqual(['busy', 'busy', 'busy', 'quick', 'quick', 'removed'])
  })
})

describe('the rest of the store', () => {
  it('keeps what cannot be read, and removes the oldest at a thousand', async () => {
    const path = join(folder(), 'store.db')
    const { store } = await openStore({ path })
    const bytes = 'x'.repeat(1000)
    for (let at = 0; at < 3000; at += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          store.settings.quarantine({ at: at + index, source: 'stream', reason: 'r', bytes }),
        ),
      )
    }
    const tables = await tablesOf(path)
    expect(await tables.value('SELECT count(*) FROM quarantine')).toBe(1000)
    expect(await tables.value('SELECT min(at) FROM quarantine')).toBe(2000)
  })

  it('keeps subscriptions, the newest first, and a secret once it is written', async () => {
    const { store } = await openStore()
    const record = { id: 'wh_1', url: 'https://a', secret: 'one', createdAt: 1, retiredAt: null }
    await store.settings.saveSubscription(record)
    await store.settings.saveSubscription({ ...record, id: 'wh_2', createdAt: 2 })
    await store.settings.saveSubscription({ ...record, secret: 'other', retiredAt: 9 })
    expect(await store.settings.subscriptions()).toEqual([
      { ...record, id: 'wh_2', createdAt: 2 },
      { ...record, retiredAt: 9 },
    ])
    await store.settings.forgetSubscription('wh_2')
    expect(await store.settings.subscriptions()).toHaveLength(1)
  })

  it('keeps a handler paused until it is resumed', async () => {
    const { store, clock } = await openStore()
    await store.settings.pauseHandler('app', 'the handler answered 410')
    expect(await store.read.handlers()).toMatchObject([
      { pausedAt: clock.now(), pauseReason: 'the handler answered 410' },
    ])
    await store.settings.pauseHandler('app', null)
    expect(await store.read.handlers()).toMatchObject([{ pausedAt: null, pauseReason: null }])
  })
})

describe('the count of sessions', () => {
  it('follows each session as it comes, changes, goes, comes back, and is pruned', async () => {
    const path = join(folder(), 'store.db')
    const { store, clock } = await openStore({ path })
    const tables = await tablesOf(path)
    const statuses = ['idle', 'working', 'failed', null]
    let state = 7
    for (let step = 0; step < 200; step++) {
      state = (state * 1103515245 + 12345) % 2147483648
      const id = `ses_${(state >> 8) % 9}`
      const status = statuses[(state >> 16) % 4] ?? null
      const known = await store.resources.known(id)
      const session =
        status === null ? null : readSession({ id, status, updated_at: step, title: null }, () => undefined)
      const revision = known?.revision ?? null
      if (session !== null || known !== null)
        await store.log.commit({ readings: [reading(revision, { sessionId: id, session, at: step })] })
      if (step % 50 === 49) await store.log.prune(clock.now() - (step - 10))
      const { sessions } = await store.read.counts()
      for (const one of ['idle', 'working', 'failed'])
        expect(sessions[one] ?? 0).toBe(
          await tables.value(`SELECT count(*) FROM sessions WHERE deleted_at IS NULL AND status = '${one}'`),
        )
    }
  })

  it.file('is correct in a store of the version before', async () => {
    const path = join(folder(), 'store.db')
    const db = new Database(path)
    migrate(db, 3)
    db.exec("INSERT INTO sessions VALUES ('ses_1', 'idle', 1, '{}', 1, 1, 0, 1, 1, NULL)")
    db.close()
    const { store: again } = await openStore({ path })
    expect((await again.read.counts()).sessions).toEqual({ idle: 1 })
  })
})

describe('actions', () => {
  const opened = (sessionId: string, turnId: string) =>
    reading(null, {
      sessionId,
      session: readSession({ id: sessionId, status: 'idle', updated_at: 1 }, () => undefined),
      opened: [readAction({ type: 'function_call', call_id: 'call_1', turn_id: turnId, name: 'lookup' })],
    })

  it('that return are not logged, and those with the id of another action are', async () => {
    const { store, log } = await openStore()
    const twins = () => log.lines.filter(({ message }) => message.includes('the id of an earlier one'))
    await store.log.commit({ readings: [opened('ses_1', 'trn_1')] })
    await store.log.commit({ readings: [{ ...opened('ses_1', 'trn_1'), revision: 1 }] })
    expect(twins()).toEqual([])
    await store.log.commit({
      readings: [{ ...opened('ses_1', 'trn_2'), revision: 2 }, opened('ses_2', 'trn_1')],
    })
    expect(twins().map(({ details }) => details)).toEqual([
      { callId: 'call_1', sessionId: 'ses_1' },
      { callId: 'call_1', sessionId: 'ses_2' },
    ])
  })
})
