import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BegunAttempts } from '../../src/sidecar/store/postgres/begun.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { folder, openStore } from './database.ts'
import { it, tablesOf } from './engines.ts'
import { acknowledge, read, ack } from './lane.ts'

async function begunWorld() {
  const path = join(folder(), 'store.db')
  const { store, clock } = await openStore({ path })
  const { lanes } = await store.log.commit({ facts: [frameFact(1)] })
  const [{ lane, deliveries } = { lane: null, deliveries: [] }] = lanes
  const [delivery] = deliveries
  if (lane === null || delivery === undefined) throw new Error('no lane')
  const { pos } = delivery.fact
  const tables = await tablesOf(path)
  const rows = () => tables.value('SELECT count(*) FROM begun')
  return { path, store, clock, lane, delivery, pos, rows }
}

// The handler answers while the database is unreachable: nothing but the outcome's transaction removes the row.
it('a row that a commit without an answer may have written is removed with the outcome', async () => {
  const clock = new VirtualClock()
  const sent: string[] = []
  const transaction = {
    rows: async () => [],
    change: async (text: string) => sent.push(text),
    script: async () => undefined,
    commit: async () => undefined,
    rollback: async () => undefined,
  }
  const begun = new BegunAttempts(clock, async () => undefined)
  const lane = { id: 1, handler: 'app', key: 'ses_1', lease: { owner: 'o', epoch: 1 } }
  begun.begin(lane, 1, { positions: [7], shard: 0 })
  await clock.advance(60)
  await begun.note(transaction)
  begun.unknown()
  begun.end(lane)
  await begun.settle(transaction, [{ lane, handler: 1, pos: 7 }])
  expect(sent.map((text) => text.trim().split(' ', 1)[0])).toEqual(['INSERT', 'DELETE'])
  begun.stop()
})

describe('an attempt that is under way', () => {
  it('is written if it takes long, and removed when its outcome is stored', async () => {
    const { store, clock, lane, delivery, pos, rows } = await begunWorld()
    store.lanes.begin(lane, [pos])
    await clock.advance(49)
    expect(await rows()).toBe(0)
    await clock.advance(1)
    await expect.poll(rows).toBe(1)
    await acknowledge(store, () => [ack(lane, delivery, 'retry')])
    expect(await rows()).toBe(0)
    await clock.advance(1000)
    expect(await rows()).toBe(0)
  })

  it('is not written if it ends earlier', async () => {
    const { store, clock, lane, delivery, pos, rows } = await begunWorld()
    store.lanes.begin(lane, [pos])
    await clock.advance(30)
    store.lanes.end(lane)
    // Its outcome waits for others to share a commit with.
    await clock.advance(30)
    expect(await rows()).toBe(0)
    await acknowledge(store, () => [ack(lane, delivery, 'delivered')])
    await clock.advance(1000)
    expect(await rows()).toBe(0)
  })

  it('is removed if none of it is stored', async () => {
    const { store, clock, lane, pos, rows } = await begunWorld()
    for (const ms of [30, 80]) {
      store.lanes.begin(lane, [pos])
      await clock.advance(ms)
      store.lanes.drop(lane, [pos])
      await clock.advance(1)
      await expect.poll(rows).toBe(0)
    }
  })

  it('is an attempt without an answer for the next process, and only raises the number of the next', async () => {
    const { path, store, clock, lane, pos } = await begunWorld()
    store.lanes.begin(lane, [pos])
    const at = clock.now()
    await clock.advance(60)
    // It closes after the write that notes the attempt.
    await store.close()
    const { store: next } = await openStore({ path, clock })
    expect(await read(next, lane)).toMatchObject([{ attempts: 0, cut: 1 }])
    const [row] = (await next.read.deliveries({ limit: 1 })).rows
    const error = 'the sidecar stopped before an answer'
    expect(row).toMatchObject({ status: 'pending', attempts: [{ at, error, ms: 0 }] })
  })
})
