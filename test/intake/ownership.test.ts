import { expect, it, onTestFinished } from 'vitest'
import type { Fact } from '../../src/core/fact.ts'
import { streamFactId } from '../../src/core/fact.ts'
import type { Batch } from '../../src/core/store.ts'
import { inScope, scopeText } from '../../src/core/scope.ts'
import { Bus } from '../../src/core/bus.ts'
import { createHintFilter, createOwnership } from '../../src/sidecar/intake/ownership.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'

const SCOPE = { metadata: { app: 'billing' }, createdByToken: [] }

const frame = (seq: number, sessionId: string, body = '{}'): Fact => ({
  id: streamFactId(String(seq), sessionId),
  type: 'agent.message',
  sessionId,
  turnId: null,
  at: 1,
  family: 'transcript',
  seq: String(seq),
  body,
  seen: { stream: 1 },
  subject: null,
})

function world() {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  const batches: Batch[] = []
  const commit = async (batch: Batch) => {
    batches.push(batch)
    const committed = await store.log.commit({ ...batch, scoped: true })
    ownership.ownersNoted(batch.owners ?? [], committed.held)
    return committed
  }
  const filter = createHintFilter(store, SCOPE)
  const ownership = createOwnership({ scope: SCOPE, store, filter, bus: new Bus(), commit, clock, log })
  const frames = (from: number, count: number, sessionId: string, body?: string) =>
    commit({
      facts: Array.from({ length: count }, (_, n) => frame(from + n, sessionId, body)),
      cursor: String(from + count - 1),
    })
  const { signal } = new AbortController()
  return { store, clock, log, batches, commit, ownership, frames, signal }
}

it('compares every pair and every condition, and inherits no key', () => {
  const of = (metadata: Record<string, string>, createdByToken: string | null = null) => ({
    metadata,
    createdByToken,
  })
  expect(inScope(of({}), null)).toBe(true)
  expect(inScope(of({ app: 'billing', more: '1' }), SCOPE)).toBe(true)
  expect(inScope(of({ app: 'Billing' }), SCOPE)).toBe(false)
  expect(inScope(of({}), { ...SCOPE, metadata: { app: '' } })).toBe(false)
  expect(inScope(of({ app: '' }), { ...SCOPE, metadata: { app: '' } })).toBe(true)
  const both = { metadata: { app: 'billing', tier: 'a' }, createdByToken: ['tok_1', 'tok_2'] }
  expect(inScope(of({ app: 'billing', tier: 'a' }, 'tok_2'), both)).toBe(true)
  expect(inScope(of({ app: 'billing', tier: 'b' }, 'tok_2'), both)).toBe(false)
  expect(inScope(of({ app: 'billing', tier: 'a' }, 'tok_3'), both)).toBe(false)
  expect(inScope(of({ app: 'billing', tier: 'a' }), both)).toBe(false)
  expect(scopeText({ metadata: { b: '1', a: '2' }, createdByToken: ['y', 'x'] })).toBe(
    scopeText({ metadata: { a: '2', b: '1' }, createdByToken: ['x', 'y'] }),
  )
})

it('stores frames of unknown sessions in the commit that moves the cursor, and later delivers them in order or drops them', async () => {
  const { store, commit, frames } = world()
  await frames(1, 2, 'ours')
  await frames(3, 2, 'theirs')
  await frames(5, 1, 'gone')
  // A service that repeats itself.
  await frames(1, 2, 'ours')
  expect(await store.resources.heldFrames()).toMatchObject({ frames: 5 })
  expect(await store.settings.checkpoint('stream')).toBe('5')
  const { facts } = await commit({ owners: [{ sessionId: 'ours', owner: 'ours', at: 1 }] })
  expect(facts.map(({ seq }) => seq)).toEqual(['1', '2'])
  await commit({ owners: [{ sessionId: 'theirs', owner: 'foreign', at: 1 }] })
  const { unattributed, held } = await commit({ owners: [{ sessionId: 'gone', owner: 'gone', at: 1 }] })
  expect([unattributed, held]).toEqual([1, { frames: 0, characters: 0 }])
  const later = await commit({ facts: [frame(6, 'theirs'), frame(7, 'ours'), frame(8, 'gone')], cursor: '8' })
  expect(later.facts.map(({ seq }) => seq)).toEqual(['7'])
  expect(await store.resources.heldFrames()).toEqual({ frames: 0, characters: 0 })
})

it('delivers held frames also when later ones of others were delivered and pruned meanwhile', async () => {
  const { store, commit, frames, clock } = world()
  await commit({ owners: [{ sessionId: 'other', owner: 'ours', at: 1 }] })
  await frames(1, 2, 'slow')
  await frames(3, 2, 'other')
  expect(await store.log.prune(clock.now() - 2)).toMatchObject({ facts: 2 })
  // What was delivered and removed is not held again, either, when the service repeats everything.
  await commit({ owners: [{ sessionId: 'other', owner: 'unknown', at: 1 }] })
  await frames(3, 2, 'other')
  const { facts } = await commit({ owners: [{ sessionId: 'slow', owner: 'ours', at: 1 }] })
  expect(facts.map(({ seq }) => seq)).toEqual(['1', '2'])
  expect(await store.resources.heldFrames()).toMatchObject({ frames: 0 })
})

it('reads a session with held frames without a hint, and hints about a foreign one cost nothing', async () => {
  const { store, commit, frames, clock } = world()
  await frames(1, 1, 'theirs')
  const wait = await store.hints.nextDue()
  expect(wait).not.toBeNull()
  await clock.advance(wait ?? 0)
  const claimed = await store.hints.claim(10)
  expect(claimed).toMatchObject([{ sessionId: 'theirs' }])
  await commit({ owners: [{ sessionId: 'theirs', owner: 'foreign', at: 1 }] })
  for (const one of claimed) await store.hints.release(one)
  const hint = { sessionId: 'theirs', channel: 'webhook', at: 1, scope: 'turns', delay: 0 } as const
  expect((await commit({ hints: [hint] })).hinted).toBe(false)
  expect(await store.hints.nextDue()).toBeNull()
})

it('leaves out what came before a session was ours, unless the service restarts its seq', async () => {
  const { store, commit, frames } = world()
  await commit({ owners: [{ sessionId: 's', owner: 'foreign', at: 1 }] })
  await frames(1, 9, 's')
  await commit({ owners: [{ sessionId: 's', owner: 'pending', adoptedAt: 5, at: 2 }] })
  await frames(8, 3, 's')
  const { facts } = await commit({ owners: [{ sessionId: 's', owner: 'ours', at: 3 }] })
  expect(facts.map(({ seq }) => seq)).toEqual(['10'])
  expect((await frames(7, 2, 's')).facts).toEqual([])
  expect(await store.resources.owners(['s', 'other'])).toEqual(
    new Map([['s', { owner: 'ours', adoptedAt: 5 }]]),
  )
  await store.settings.setCheckpoint('stream', '')
  expect((await frames(2, 1, 's')).facts).toHaveLength(1)
})

it.each([
  ['frames', 10_000, '{}'],
  ['characters', 17, `"${'x'.repeat(1024 * 1024)}"`],
])(
  'stops reading the stream at the limit of %s, requests the list, and continues when they are read',
  async (_, many, body) => {
    const { ownership, frames, batches, commit, log, signal } = world()
    const step = Math.min(1000, many)
    for (let from = 1; from <= many; from += step) {
      expect(ownership.room(signal)).toBeNull()
      await frames(from, step, 's', body)
    }
    const room = ownership.room(signal)
    expect(room).not.toBeNull()
    let open = false
    void room?.then(() => (open = true))
    await expect.poll(() => batches.at(-1)?.hints).toMatchObject([{ sessionId: null, scope: 'turns' }])
    expect(log.lines.at(-1)?.message).toContain('the stream is not read until')
    expect(open).toBe(false)
    await commit({ owners: [{ sessionId: 's', owner: 'foreign', at: 1 }] })
    await room
    expect(open).toBe(true)
  },
)

it('releases a connection that ends while frames wait for room', async () => {
  const { ownership, frames } = world()
  await frames(1, 10_000, 's')
  const connection = new AbortController()
  const room = ownership.room(connection.signal)
  connection.abort()
  await expect(room).rejects.toThrow('the connection ended')
})
