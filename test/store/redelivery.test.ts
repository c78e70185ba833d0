import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Store } from '../../src/core/store.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { everything, folder, openStore } from './database.ts'
import { it } from './engines.ts'
import { acknowledge, laneOf, read, seqs, ack } from './lane.ts'

/** Three facts of two sessions, all dead. */
async function deadLettered(ordered = true) {
  const opened = await openStore({}, [everything('app', { ordered }), everything('other')])
  const { store, clock } = opened
  const { lanes } = await store.log.commit({
    facts: [
      frameFact(1, 'ses_1', { at: clock.now() }),
      frameFact(2, 'ses_1', { at: clock.now() + 1000 }),
      frameFact(3, 'ses_2', { at: clock.now() + 2000 }),
    ],
  })
  const mine = lanes.filter(({ lane }) => lane.handler === 'app')
  await acknowledge(store, () =>
    mine.flatMap(({ lane, deliveries }) => deliveries.map((delivery) => ack(lane, delivery, 'dead'))),
  )
  for (const { lane } of mine) await store.lanes.release(lane)
  return opened
}

describe('dead letters', () => {
  it.each([
    { name: 'in their order', ordered: true, lanes: ['1,2', '3'] },
    { name: 'each for itself where none is wanted', ordered: false, lanes: ['1', '2', '3'] },
  ])('are redelivered $name, with new attempts', async ({ ordered, lanes: expected }) => {
    const { store } = await deadLettered(ordered)
    expect(await store.operator.retry({ dryRun: true })).toEqual({ count: 3 })
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toEqual([])
    expect(await store.operator.retry({})).toEqual({ count: 3 })
    const lanes = await store.lanes.claim({ handler: 'app', lanes: 10 })
    const pending = await Promise.all(lanes.map((lane) => read(store, lane)))
    expect(pending.flat().map(({ attempts }) => attempts)).toEqual([0, 0, 0])
    expect(new Set(pending.map((lane) => seqs(lane).join()))).toEqual(new Set(expected))
    expect(await store.operator.retry({})).toEqual({ count: 0 })
  })

  it('are selected by handler, by time, or by id', async () => {
    const { store, clock } = await deadLettered()
    const dry = (selection: object) => store.operator.retry({ dryRun: true, ...selection })
    expect(await dry({ handler: 'other' })).toEqual({ count: 0 })
    expect(await dry({ handler: 'unknown' })).toEqual({ count: 0 })
    expect(await dry({ since: clock.now() + 1000 })).toEqual({ count: 2 })
    const [newest] = (await store.read.deliveries({ limit: 1, status: 'dead' })).rows
    expect(await store.operator.retry({ id: newest?.id ?? '' })).toEqual({ count: 1 })
    expect(await store.operator.retry({ id: newest?.id ?? '' })).toEqual({ count: 0 })
    expect(await store.operator.retry({ id: 'dlv_99_9' })).toEqual({ count: 0 })
    expect(await store.operator.retry({ id: 'no id' })).toEqual({ count: 0 })
    const lane = await laneOf(store)
    expect(seqs(await read(store, lane))).toEqual(['3'])
  })

  it('get a new lane if pruning removed theirs', async () => {
    const { store } = await deadLettered()
    await store.log.prune(1)
    expect(await store.operator.retry({})).toEqual({ count: 3 })
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toHaveLength(2)
  })
})

describe('a replay', () => {
  it('delivers past facts again to one handler that selects them, from a position, a seq or a time', async () => {
    const { store } = await openStore({}, [everything('app')])
    const facts = [
      frameFact(10, 'ses_1', { at: 1000 }),
      turnFact('turn.completed', 'trn_1', 'ses_1', { at: 2000 }),
      frameFact(20, 'ses_1', { at: 3000 }),
    ]
    const stored = await store.log.commit({ facts })
    await store.settings.registerHandlers([
      everything('app'),
      everything('late', { events: ['agent.message'] }),
      everything('later'),
    ])
    expect(await store.operator.replay('late', { at: 1000 })).toEqual({ count: 2 })
    expect(await store.operator.replay('late', { at: 1000 })).toEqual({ count: 0 })
    expect(await store.operator.replay('later', { seq: '11' })).toEqual({ count: 1 })
    expect(await store.operator.replay('later', { pos: stored.facts[1]?.pos ?? 0 })).toEqual({ count: 1 })
    expect(await store.operator.replay('later', { at: 3001 })).toEqual({ count: 0 })
    expect(await store.operator.replay('unknown', { at: 0 })).toEqual({ count: 0 })
    const [lane] = await store.lanes.claim({ handler: 'late', lanes: 1 })
    if (lane === undefined) throw new Error('nothing is due')
    expect(seqs(await read(store, lane))).toEqual(['10', '20'])
  })
})

describe('a large redelivery', () => {
  const MANY = 1700

  /** More dead letters, of a few sessions, than one transaction makes pending. */
  async function many(path = ':memory:') {
    const opened = await openStore({ path }, [everything('app')])
    const { store } = opened
    const facts = Array.from({ length: MANY }, (_, index) => frameFact(index + 1, `ses_${index % 3}`))
    const { lanes } = await store.log.commit({ facts })
    await acknowledge(store, () =>
      lanes.flatMap(({ lane, deliveries }) => deliveries.map((delivery) => ack(lane, delivery, 'dead'))),
    )
    for (const { lane } of lanes) await store.lanes.release(lane)
    return opened
  }

  it.each([
    { name: 'dead letters', deliver: (store: Store) => store.operator.retry({}) },
    { name: 'a replay', deliver: (store: Store) => store.operator.replay('app', { at: 0 }) },
  ])('lets other lanes go first, and is complete and in order ($name)', async ({ deliver }) => {
    const { store } = await many()
    const ends: string[] = []
    const [{ count }] = await Promise.all([
      deliver(store).finally(() => ends.push('all of it')),
      store.settings.setCheckpoint('other', '1').then(() => ends.push('another write')),
    ])
    expect(ends).toEqual(['another write', 'all of it'])
    expect(count).toBe(MANY)
    const lanes = await store.lanes.claim({ handler: 'app', lanes: 10 })
    const pages = await Promise.all(lanes.map((lane) => store.lanes.read(lane, 0, MANY, 1e9)))
    const pending = pages.map(({ deliveries }) => deliveries)
    expect(pending).toHaveLength(3)
    expect(pending.flat()).toHaveLength(MANY)
    for (const lane of pending) {
      const numbers = seqs(lane).map(Number)
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    }
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: MANY, dead: 0 } } })
  })

  it('that is interrupted has begun with the oldest, and the rest is unchanged', async () => {
    const path = join(folder(), 'store.db')
    const { store } = await many(path)
    const refused = store.operator.retry({}).catch((error: unknown) => error)
    await store.settings.setCheckpoint('other', '1')
    await store.close()
    expect(await refused).toMatchObject({ kind: 'closed' })
    const { store: again } = await openStore({ path })
    const pending = (await again.read.deliveries({ limit: MANY, status: 'pending' })).rows
    const dead = (await again.read.deliveries({ limit: MANY, status: 'dead' })).rows
    expect(pending.length + dead.length).toBe(MANY)
    expect(pending.length).toBeGreaterThan(0)
    expect(pending[0]?.pos).toBeLessThan(dead.at(-1)?.pos ?? 0)
  })
})
