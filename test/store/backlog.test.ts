import { expect, it } from 'vitest'
import type { DeliveryRecord } from '../../src/core/delivery.ts'
import type { Store } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { openBacklog } from './backlog.ts'
import { everything } from './database.ts'
import { ack, acknowledge, ATTEMPT, laneOf } from './lane.ts'
import { adminOf, openProcess } from './process.ts'
import { until } from '../support/until.ts'

const positionsOf = (rows: readonly DeliveryRecord[]): number[] => rows.map(({ pos }) => pos)
const downFrom = (first: number, step = 1): number[] =>
  Array.from({ length: 20 }, (_, index) => first - index * step)

it('a page of deliveries reads few facts of a long backlog, and continues where the last one ended', async () => {
  const { store, rowsRead } = await openBacklog(20_000)
  const read = await rowsRead(40, async () => {
    const first = await store.read.deliveries({ limit: 20 })
    const after = first.rows.at(-1)?.id ?? ''
    const second = await store.read.deliveries({ limit: 20, status: 'pending', handler: 'app', after })
    expect(positionsOf(first.rows)).toEqual(downFrom(20_000))
    expect(positionsOf(second.rows)).toEqual(downFrom(19_980))
    await store.close()
  })
  expect(read).toBeLessThan(1000)
})

it('the page of one session reads few facts of a long backlog', async () => {
  const { store, rowsRead } = await openBacklog(20_000)
  const read = await rowsRead(20, async () => {
    const { rows } = await store.read.deliveries({ limit: 20, sessionId: 'ses_7' })
    expect(positionsOf(rows)).toEqual(downFrom(19_907, 100))
    await store.close()
  })
  expect(read).toBeLessThan(1000)
})

it('a page reads few facts where the handler refused each of them', async () => {
  const { store, rowsRead } = await openBacklog(
    20_000,
    20_000,
    `INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT f.pos, 1, l.id, 0, 1, '{"at":1,"status":500,"ms":1}' FROM sidecar.facts f JOIN sidecar.lanes l ON l.key = f.session_id`,
  )
  const read = await rowsRead(20, async () => {
    const { rows } = await store.read.deliveries({ limit: 20, status: 'pending' })
    expect(positionsOf(rows)).toEqual(downFrom(20_000))
    await store.close()
  })
  expect(read).toBeLessThan(1000)
})

it('an old backlog is found behind newer facts that are delivered', async () => {
  const { store } = await openBacklog(
    20_000,
    100,
    `INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT f.pos, 1, l.id, 1, 1, '' FROM sidecar.facts f JOIN sidecar.lanes l ON l.key = f.session_id WHERE f.pos > 12000;
     UPDATE sidecar.lanes SET pending = 120`,
  )
  const all = await store.read.deliveries({ limit: 20 })
  expect(all.rows.map(({ pos, status }) => [pos, status])).toEqual(
    downFrom(20_000).map((pos) => [pos, 'delivered']),
  )
  const pending = await store.read.deliveries({ limit: 20, status: 'pending', handler: 'app' })
  expect(positionsOf(pending.rows)).toEqual(downFrom(12_000))
  expect((await store.read.deliveries({ limit: 20, status: 'pending', handler: 'other' })).rows).toEqual([])
  await store.close()
})

// 200 attempts were cut amid a million pending deliveries: no process could take the shards, for ever.
it('attempts that a crash cut amid a long backlog are recovered without a look at the backlog', async () => {
  const { url, store, rowsRead } = await openBacklog(
    20_000,
    100,
    'INSERT INTO sidecar.begun SELECT n, 1, 1, 0 FROM generate_series(1, 20) AS n',
  )
  await store.close()
  const read = await rowsRead(1, async () => {
    const { store: next } = await openProcess(url)
    await next.shards.join()
    await until('the shards', () => next.shards.owns('ses_1'))
    await next.close()
  })
  expect(read).toBeLessThan(1000)
  const { rows } = await (
    await adminOf(url)
  ).query('SELECT count(*)::int AS cut FROM sidecar.delivery_rows WHERE cut = 1')
  expect(rows).toEqual([{ cut: 20 }])
})

it('the oldest of many deliveries without an order is found by a few of their lanes', async () => {
  const { store, rowsRead } = await openBacklog(
    20_000,
    20_000,
    `UPDATE sidecar.lanes l SET key = f.id FROM sidecar.facts f WHERE f.pos = l.fresh;
     INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT f.pos, 1, l.id, 0, 0, '' FROM sidecar.facts f JOIN sidecar.lanes l ON l.key = f.id;
     UPDATE sidecar.facts SET wanted = 0, at = pos`,
  )
  const read = await rowsRead(1000, async () => {
    expect((await store.read.counts()).deliveries['app']).toMatchObject({ pending: 20_000, oldestPending: 1 })
    await store.close()
  })
  expect(read).toBeLessThan(4000)
})

// Each claim sorted all lanes, and a backlog of a million took an hour.
it('a claim in a long backlog without an order reads few lanes', async () => {
  const { store, rowsRead } = await openBacklog(20_000, 20_000)
  const read = await rowsRead(
    50,
    async () => {
      await until('the shards', () => store.shards.owns('ses_1'))
      expect(await store.lanes.claim({ handler: 'app', lanes: 50 })).toHaveLength(50)
      expect(await store.lanes.nextDue('app')).toBe(0)
      await store.close()
    },
    ['lanes'],
  )
  expect(read).toBeLessThan(1000)
})

it('a lane is changed on its page, where no dead row stays in an index', async () => {
  const { url, store } = await openBacklog(
    100,
    1,
    "UPDATE sidecar.positions SET last = 100 WHERE name = 'facts'",
  )
  for (let pos = 1; pos <= 20; pos++) {
    await deliver(store, pos, pos)
    await store.log.commit({ facts: [frameFact(1000 + pos, 'ses_0')] })
  }
  await store.close()
  const admin = await adminOf(url)
  const changes = await until('the statistics', async () => {
    const { rows } = await admin.query<{ all: number; hot: number }>(
      `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'lanes'`,
    )
    const [row] = rows
    return (row?.all ?? 0) >= 40 && row
  })
  expect(changes.hot).toBe(changes.all)
})

it('the oldest of deliveries in many sessions is found by the lanes of a few', async () => {
  const { store, rowsRead } = await openBacklog(20_000, 20_000, 'UPDATE sidecar.facts SET at = pos')
  const read = await rowsRead(1000, async () => {
    expect((await store.read.counts()).deliveries['app']).toMatchObject({ pending: 20_000, oldestPending: 1 })
    await store.close()
  })
  expect(read).toBeLessThan(4000)
})

it('the oldest delivery is found where its attempt failed, and newer ones of its session were never tried', async () => {
  const { store } = await openBacklog(
    20_000,
    20_000,
    `UPDATE sidecar.facts SET at = pos;
     INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT 1, 1, id, 0, 1, '' FROM sidecar.lanes WHERE fresh = 1;
     UPDATE sidecar.lanes SET fresh = 20001 WHERE fresh = 1`,
  )
  expect((await store.read.counts()).deliveries['app']).toMatchObject({ pending: 20_000, oldestPending: 1 })
  await store.close()
})

it('a start with a long backlog looks at none of its lanes', async () => {
  const { store, rowsRead } = await openBacklog(20_000, 20_000)
  const read = await rowsRead(0, async () => {
    await store.settings.registerHandlers([everything('app'), everything('other')])
    await store.close()
  })
  expect(read).toBeLessThan(100)
})

/** Outcomes of the facts from position `from` to position `to` of the only session. */
async function deliver(store: Store, from: number, to: number): Promise<void> {
  const lane = await laneOf(store)
  const positions = Array.from({ length: to - from + 1 }, (_, index) => from + index)
  const outcome = { lane, result: 'delivered', attempts: 1, attempt: ATTEMPT, after: null } as const
  await acknowledge(store, () => positions.map((pos) => ({ ...outcome, pos })))
  await store.lanes.release(lane)
}

const freshOf = async (url: string): Promise<unknown[]> =>
  (await (await adminOf(url)).query('SELECT fresh::int, pending::int FROM sidecar.lanes')).rows

it('the outcomes of a session with few further facts are stored without a look at the facts before', async () => {
  const { url, store, rowsRead } = await openBacklog(5000, 1)
  const read = await rowsRead(1, async () => {
    await deliver(store, 1, 4990)
    await store.close()
  })
  expect(await freshOf(url)).toEqual([{ fresh: 4991, pending: 10 }])
  expect(read).toBeLessThan(100)
})

it('a fact that was left out stays pending, however many later ones of its session are delivered', async () => {
  const { url, store } = await openBacklog(5000, 1)
  await deliver(store, 2, 4990)
  expect(await freshOf(url)).toEqual([{ fresh: 1, pending: 11 }])
  const pending = (await store.read.deliveries({ limit: 20, status: 'pending' })).rows
  expect(positionsOf(pending)).toEqual([...downFrom(5000).slice(0, 10), 1])
  await store.close()
})

// The plan of a statement was made while the tables were empty: with a million facts it read all of them for each new one.
it('statements that were planned for empty tables use the indexes when these have grown', async () => {
  const { url, store, rowsRead } = await openBacklog(0, 1)
  const admin = await adminOf(url)
  await admin.query('VACUUM ANALYZE sidecar.facts, sidecar.lanes, sidecar.delivery_rows')
  const commit = async (from: number): Promise<void> => {
    const facts = [from, from + 1].map((seq) => frameFact(seq, `ses_${seq % 2}`))
    const { lanes } = await store.log.commit({ facts })
    const acks = lanes.flatMap(({ lane, deliveries }) =>
      deliveries.map((delivery) => ack(lane, delivery, 'delivered')),
    )
    for (const { lane } of lanes) await store.lanes.read(lane, 0, 10, 1e6)
    await acknowledge(store, () => acks)
    for (const { lane } of lanes) await store.lanes.release(lane)
  }
  await commit(1)
  await admin.query(`
    INSERT INTO sidecar.facts (pos, id, type, session_id, at, family, body, checksum)
      SELECT n, n, 'agent.message', 'ses_' || n, 0, 'transcript', '{}', 0 FROM generate_series(1000, 21000) AS n;
    INSERT INTO sidecar.lanes (handler, key, shard, pending, due_at)
      SELECT 1, 'ses_' || n, 0, 0, 0 FROM generate_series(1000, 21000) AS n;
    INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
      SELECT n, 1, 0, 1, 1, '' FROM generate_series(1000, 21000) AS n;
    UPDATE sidecar.positions SET last = 30000 WHERE name = 'facts'`)
  const read = await rowsRead(
    1,
    async () => {
      await commit(3)
      await store.close()
    },
    ['facts', 'lanes', 'delivery_rows'],
  )
  expect(read).toBeLessThan(100)
})
