import { expect, it } from 'vitest'
import { frameFact } from '../../support/fact.ts'
import { createDatabase } from '../../support/postgres.ts'
import { everything } from '../../store/database.ts'
import { ack } from '../../store/lane.ts'
import { adminOf, openProcess } from '../../store/process.ts'
import { Tally } from '../tally.ts'
import { PostgresBooks } from './books.ts'
import { admitted, watchWrites } from './writes.ts'

/** A process that has stored a fact and the outcome of its delivery, while its writes were watched. */
async function watched() {
  const url = await createDatabase()
  const { store } = await openProcess(url)
  const world = { books: new PostgresBooks(url), tally: new Tally() }
  await watchWrites(world)
  await store.settings.registerHandlers([everything('app')])
  await store.shards.join()
  const admin = await adminOf(url)
  const deliver = async (seq: number): Promise<void> => {
    const { lanes } = await store.log.commit({ facts: [frameFact(seq, 'ses_1')], cursor: String(seq) })
    const [{ lane, deliveries } = { lane: null, deliveries: [] }] = lanes
    const [delivery] = deliveries
    if (lane === null || delivery === undefined) throw new Error('no delivery')
    await store.log.commit({ acks: () => [ack(lane, delivery, 'delivered')] })
    await store.lanes.release(lane)
  }
  await deliver(1)
  return { admin, deliver, find: () => admitted(world) }
}

it('finds nothing in what a process stores for its own shards', async () => {
  const { find } = await watched()
  expect(await find()).toEqual([])
})

it('finds a write that passed no fence', async () => {
  const { admin, find } = await watched()
  await admin.query('UPDATE sidecar.lanes SET due_at = 1')
  expect(await find()).toMatchObject([{ invariant: 'I8', message: '1 writes of lanes passed no fence' }])
})

it('finds a write of a process that is fenced', async () => {
  const { admin, find } = await watched()
  await admin.query('UPDATE sidecar.replicas SET fenced = true')
  await admin.query('UPDATE sidecar.commits SET last = last + 1')
  expect((await find()).map(({ message }) => message)).toEqual([
    expect.stringContaining('wrote after it was fenced'),
  ])
})

it('finds an outcome of a shard that another process has', async () => {
  const { admin, deliver, find } = await watched()
  await admin.query('UPDATE sidecar.leases SET owner = NULL')
  await deliver(2)
  expect((await find()).map(({ message }) => message)).toEqual([
    expect.stringContaining('which no process has'),
  ])
})
