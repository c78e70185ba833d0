import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Lane } from '../../src/core/delivery.ts'
import { frameFact } from '../support/fact.ts'
import { everything, folder, openStore } from './database.ts'
import { it, tablesOf } from './engines.ts'
import { acknowledge, ATTEMPT, laneOf, read, seqs, ack } from './lane.ts'

describe('a lane', () => {
  it('is claimed by the commit that extends it, until it is released', async () => {
    const { store } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1)] })
    expect(lanes[0]?.claimed).toBe(true)
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toEqual([])
    expect(await store.lanes.nextDue('app')).toBeNull()
    if (lanes[0] !== undefined) await store.lanes.release(lanes[0].lane)
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toEqual([lanes[0]?.lane])
  })

  it('is claimed by only one of two commits of one transaction that extend it', async () => {
    const { store } = await openStore()
    const [one, two] = await Promise.all([
      store.log.commit({ facts: [frameFact(1)] }),
      store.log.commit({ facts: [frameFact(2)] }),
    ])
    expect([one.lanes[0]?.claimed, two.lanes[0]?.claimed]).toEqual([true, false])
  })

  it('gives its facts in the order of the log, from any position, by number or by characters', async () => {
    const { store } = await openStore()
    const { lanes, facts } = await store.log.commit({ facts: [3, 1, 2].map((seq) => frameFact(seq)) })
    const lane = lanes[0]?.lane as Lane
    expect(seqs(await read(store, lane))).toEqual(['3', '1', '2'])
    expect(seqs((await store.lanes.read(lane, facts[0]?.pos ?? 0, 1, 1e6)).deliveries)).toEqual(['1'])
    expect(seqs((await store.lanes.read(lane, 0, 100, 1)).deliveries)).toEqual(['3'])
  })

  it('reports whether facts are pending behind those that are read', async () => {
    const { store } = await openStore()
    const { lanes, facts } = await store.log.commit({ facts: [1, 2, 3].map((seq) => frameFact(seq)) })
    const lane = lanes[0]?.lane as Lane
    const isComplete = async (after: number, limit: number, maxBytes: number): Promise<boolean> =>
      (await store.lanes.read(lane, after, limit, maxBytes)).complete
    expect(await isComplete(0, 4, 1e6)).toBe(true)
    expect(await isComplete(0, 2, 1e6)).toBe(false)
    expect(await isComplete(0, 4, 1)).toBe(false)
    expect(await isComplete(facts[2]?.pos ?? 0, 2, 1)).toBe(true)
  })

  it('that is deferred is not due before its time, and others go first', async () => {
    const { store, clock } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1, 'ses_1'), frameFact(2, 'ses_2')] })
    const [one, two] = lanes.map(({ lane }) => lane)
    if (one === undefined || two === undefined) throw new Error('no lanes')
    await store.lanes.retry(one, 5000)
    await store.lanes.retry(two, 1000)
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toEqual([])
    expect(await store.lanes.nextDue('app')).toBe(1000)
    await clock.advance(5000)
    expect(await store.lanes.claim({ handler: 'app', lanes: 1 })).toEqual([two])
    expect(await store.lanes.claim({ handler: 'app', lanes: 10 })).toEqual([one])
  })

  it('stays deferred when a fact is added, unless it was empty', async () => {
    const { store } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1)] })
    const lane = lanes[0]?.lane as Lane
    await store.lanes.retry(lane, 60_000)
    await store.log.commit({ facts: [frameFact(2)] })
    expect(await store.lanes.nextDue('app')).toBe(60_000)
  })

  it('returns its new deliveries, so that the holder of the lane need not read', async () => {
    const { store } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1), frameFact(2)] })
    expect(seqs(lanes[0]?.deliveries ?? [])).toEqual(['1', '2'])
    const more = await store.log.commit({ facts: [frameFact(3)] })
    expect(more.lanes).toMatchObject([{ lane: lanes[0]?.lane, claimed: false }])
    expect(seqs(more.lanes[0]?.deliveries ?? [])).toEqual(['3'])
  })

  it('of another handler is not changed by the outcomes of this one', async () => {
    const { store } = await openStore({}, [everything('app'), everything('other')])
    const { lanes } = await store.log.commit({ facts: [frameFact(1)] })
    const [grown] = lanes
    const delivery = grown?.deliveries[0]
    if (grown === undefined || delivery === undefined) throw new Error('no lane')
    await acknowledge(store, () => [ack(grown.lane, delivery, 'delivered')])
    expect(await store.read.counts()).toMatchObject({
      deliveries: { app: { pending: 0 }, other: { pending: 1 } },
    })
  })
})

describe('the outcome of an attempt', () => {
  it('is written with its log; what is delivered or dead is pending no more', async () => {
    const { store, clock } = await openStore()
    const { lanes } = await store.log.commit({ facts: [1, 2, 3].map((seq) => frameFact(seq)) })
    const { lane, deliveries } = lanes[0] ?? { lane: undefined, deliveries: [] }
    const [one, two, three] = deliveries
    if (lane === undefined || one === undefined || two === undefined || three === undefined)
      throw new Error('none')
    await acknowledge(store, () => [
      ack(lane, one, 'delivered'),
      { ...ack(lane, two, 'dead'), attempt: { at: 2, error: 'verdict "dead"', ms: 3 } },
      {
        ...ack(lane, three, 'retry'),
        after: 77,
        attempt: { at: 3, status: 500, error: 'broken', ms: 4.4 },
      },
    ])
    expect((await read(store, lane)).map(({ fact, attempts }) => [fact.seq, attempts])).toEqual([['3', 1]])
    const records = (await store.read.deliveries({ limit: 10 })).rows
    expect(records.map(({ status, attempts, nextAt }) => ({ status, attempts, nextAt }))).toEqual([
      {
        status: 'pending',
        attempts: [{ at: 3, status: 500, error: 'broken', ms: 4 }],
        nextAt: clock.steady() + 77,
      },
      { status: 'dead', attempts: [{ at: 2, error: 'verdict "dead"', ms: 3 }], nextAt: null },
      { status: 'delivered', attempts: [ATTEMPT], nextAt: null },
    ])
  })

  it('that failed is found behind a backlog, the latest retry first, until the delivery has ended', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    const facts = Array.from({ length: 300 }, (_, seq) => frameFact(seq + 1, `ses_${seq % 3}`))
    const { lanes } = await store.log.commit({ facts })
    expect(await store.read.stuck('app')).toEqual([])
    const heads = lanes.map(({ lane, deliveries: [head] }) => {
      if (head === undefined) throw new Error('no delivery')
      return { lane, head }
    })
    const failed = { at: 3, status: 401, error: 'refused', ms: 4 }
    await acknowledge(store, () =>
      heads.slice(0, 2).map(({ lane, head }, at) => ({
        ...ack(lane, head, 'retry'),
        after: 77 + at,
        attempt: failed,
      })),
    )
    const [soon, late] = heads
    const stuck = async (from = store) => (await from.read.stuck('app')).map(({ factId }) => factId)
    expect(await stuck()).toEqual([late?.head.fact.id, soon?.head.fact.id])
    expect((await store.read.stuck('app'))[0]).toMatchObject({ status: 'pending', attempts: [failed] })
    await store.close()
    const again = await openStore({ path })
    expect(await stuck(again.store)).toEqual([late?.head.fact.id, soon?.head.fact.id])
  })

  it('that failed is found once it is due again, and not when it ended', async () => {
    const { store } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1), frameFact(2)] })
    const [grown] = lanes
    const [first] = grown?.deliveries ?? []
    if (grown === undefined || first === undefined) throw new Error('no lane')
    await acknowledge(store, () => [{ ...ack(grown.lane, first, 'retry'), after: 77 }])
    await store.lanes.release(grown.lane)
    const [stuck] = await store.read.stuck('app')
    await store.operator.retry({ id: stuck?.id ?? '' })
    expect(await store.read.stuck('app')).toHaveLength(1)
    await acknowledge(store, () => [ack(grown.lane, first, 'delivered')])
    expect(await store.read.stuck('app')).toEqual([])
  })

  it('counts once when it is written twice', async () => {
    const { store } = await openStore()
    const { lanes } = await store.log.commit({ facts: [frameFact(1), frameFact(2)] })
    const [grown] = lanes
    const [first] = grown?.deliveries ?? []
    if (grown === undefined || first === undefined) throw new Error('no lane')
    const done = ack(grown.lane, first, 'delivered')
    await acknowledge(store, () => [done])
    await acknowledge(store, () => [done, { ...done, result: 'dead' }])
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: 1, dead: 0 } } })
  })
})

it('a handler that is added after many starts gets the next number, so its deliveries need no rows', async () => {
  const { store } = await openStore()
  for (let starts = 0; starts < 40; starts++) await store.settings.registerHandlers([everything('app')])
  const added = await store.settings.registerHandlers([everything('app'), everything('added')])
  expect(added.map(({ number }) => number)).toEqual([1, 2])
})

describe('a fact that is damaged on the disk', () => {
  async function damagedStore(onDeadLettered: (handler: string) => void = () => {}) {
    const path = join(folder(), 'sidecar.db')
    const first = await openStore({ path })
    await first.store.log.commit({ facts: [1, 2, 3].map((seq) => frameFact(seq)) })
    await first.store.close()
    const tables = await tablesOf(path)
    await tables.change("UPDATE facts SET body = replace(body, 'frame', 'fraud') WHERE seq = '2'")
    return await openStore({ path, onDeadLettered })
  }

  it('is not sent: its delivery is a visible and counted dead letter and the lane continues', async () => {
    const deadLettered: string[] = []
    const { store, log } = await damagedStore((handler) => deadLettered.push(handler))
    const lane = await laneOf(store)
    expect(seqs(await read(store, lane))).toEqual(['1', '3'])
    await expect.poll(() => deadLettered).toEqual(['app'])
    const dead = (await store.read.deliveries({ limit: 10, status: 'dead' })).rows
    expect(dead).toMatchObject([{ status: 'dead', attempts: [{ error: 'damaged in the store' }] }])
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: 2, dead: 1 } } })
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  it('keeps in the log of its dead letter what was tried before the damage', async () => {
    const path = join(folder(), 'sidecar.db')
    const first = await openStore({ path })
    const { lanes } = await first.store.log.commit({ facts: [frameFact(1)] })
    const [grown] = lanes
    const delivery = grown?.deliveries[0]
    if (grown === undefined || delivery === undefined) throw new Error('nothing is pending')
    await acknowledge(first.store, () => [ack(grown.lane, delivery, 'retry')])
    await first.store.close()
    const tables = await tablesOf(path)
    await tables.change("UPDATE facts SET body = replace(body, 'frame', 'fraud')")
    const { store } = await openStore({ path })
    expect(await read(store, await laneOf(store))).toEqual([])
    const dead = async () => (await store.read.deliveries({ limit: 10, status: 'dead' })).rows[0]?.attempts
    await expect.poll(dead).toMatchObject([ATTEMPT, { error: 'damaged in the store' }])
  })

  it('is left out of the list of facts, which goes on behind it', async () => {
    const { store } = await damagedStore()
    const seqsOf = async (query: { order: 'asc' | 'desc'; limit: number }) =>
      (await store.read.facts(query)).rows.map(({ seq }) => seq)
    expect(await seqsOf({ order: 'asc', limit: 2 })).toEqual(['1', '3'])
    expect(await seqsOf({ order: 'desc', limit: 2 })).toEqual(['3', '1'])
    expect(await seqsOf({ order: 'asc', limit: 5 })).toEqual(['1', '3'])
  })

  it('is a dead letter again after a retry, and leaves no lane without a readable delivery', async () => {
    const { store } = await damagedStore()
    const lane = await laneOf(store)
    const pending = await read(store, lane)
    await acknowledge(store, () => pending.map((delivery) => ack(lane, delivery, 'delivered')))
    await store.lanes.release(lane)
    expect(await store.operator.retry({})).toEqual({ count: 1 })
    expect(await read(store, await laneOf(store))).toEqual([])
    const counts = async () => (await store.read.counts()).deliveries['app']
    await expect.poll(counts).toMatchObject({ pending: 0, dead: 1 })
  })
})
