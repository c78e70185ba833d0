import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Lane } from '../../src/core/delivery.ts'
import { WAKE_TOPICS, type Wake } from '../../src/core/shards.ts'
import type { StoreError } from '../../src/core/store-error.ts'
import type { Store } from '../../src/core/store.ts'
import { openDatabase, StandbyError } from '../../src/sidecar/store/postgres/database.ts'
import { inspectDatabase } from '../../src/sidecar/store/postgres/inspect.ts'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import { codeOf } from '../../src/std/errors.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { administer, createDatabase, PostgresServer } from '../support/postgres.ts'
import { Wire } from '../support/postgres-wire.ts'
import { until } from '../support/until.ts'
import { everything } from './database.ts'
import { ack, laneOf, read, seqs } from './lane.ts'
import { adminOf, openProcess } from './process.ts'
import { FULL, RELEASE } from '../support/full.ts'

async function openAt(url: string, lease = systemClock()) {
  const { store, lost } = await openProcess(url, lease)
  await store.shards.join()
  await store.settings.registerHandlers([everything('app')])
  return { store, lost }
}

async function seqsIn(store: Store): Promise<(string | null)[]> {
  const found: (string | null)[] = []
  for (let after: string | undefined; ;) {
    const { rows, more } = await store.read.facts({ limit: 1000, order: 'asc', ...(after && { after }) })
    found.push(...rows.map(({ seq }) => seq))
    if (!more) return found
    after = rows.at(-1)?.id
  }
}

/** Commits frames one after the other until it is stopped, each until it is acknowledged. */
function commitOn(store: Store) {
  const stored: string[] = []
  const kinds = new Set<unknown>()
  let goes = true
  const run = async () => {
    for (let seq = 1; goes || stored.length < seq - 1;) {
      try {
        await store.log.commit({ facts: [frameFact(seq)], cursor: String(seq) })
        stored.push(String(seq++))
      } catch (error) {
        kinds.add((error as StoreError).kind)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  const done = run()
  return {
    stored,
    kinds,
    async stop() {
      goes = false
      await done
    },
  }
}

/** The beginning of a statement that changes a setting of the database for later connections. */
function alterDatabase(url: string): string {
  return `ALTER DATABASE "${new URL(url).pathname.slice(1)}"`
}

async function codeOfCommit(store: Store, seq: number): Promise<string> {
  try {
    await store.log.commit({ facts: [frameFact(seq)], cursor: String(seq) })
    return 'committed'
  } catch (error) {
    const { kind, cause } = error as StoreError
    return `${kind}: ${cause instanceof StandbyError ? 'standby' : codeOf(cause)}`
  }
}

async function dataOf(server: PostgresServer): Promise<string> {
  const { rows } = await (
    await adminOf(server.url())
  ).query<{ data_directory: string }>('SHOW data_directory')
  return rows[0]?.data_directory ?? ''
}

const TWO = [frameFact(1), frameFact(2)]
/** More lanes than one transaction moves. */
const BACKLOG = 110_000
const FRAME = { facts: [frameFact(1)], cursor: '1' }
const COMMIT = Buffer.from('COMMIT\0')

describe('a commit whose answer is lost', () => {
  it('is found to be committed, and its promise resolves: the fact is there once', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    let asked = false
    wire.onRequest = (bytes) => {
      if (bytes.includes(COMMIT)) asked = true
      return 'pass'
    }
    wire.onAnswer = () => {
      const fate = asked ? 'cut' : 'pass'
      asked = false
      return fate
    }
    const { facts } = await store.log.commit({ facts: TWO, cursor: '2' })
    expect(facts).toHaveLength(2)
    expect(await seqsIn(store)).toEqual(['1', '2'])
    expect((await store.log.commit({ facts: TWO })).facts).toEqual([])
  })

  it('is asked for until the primary answers: a standby, which refuses the question, says nothing of it', async () => {
    const url = await createDatabase()
    const wire = await Wire.to(url)
    const { store } = await openAt(wire.url)
    const admin = await adminOf(url)
    const database = alterDatabase(url)
    // What connects from here on.
    await admin.query(`${database} SET default_transaction_read_only = on`)
    let asked = false
    let questions = 0
    wire.onRequest = (bytes) => {
      if (bytes.includes(COMMIT)) asked = true
      if (bytes.includes('SELECT last FROM sidecar.commits')) questions++
      return 'pass'
    }
    wire.onAnswer = () => {
      if (asked) wire.cutAll()
      const fate = asked ? 'cut' : 'pass'
      asked = false
      return fate
    }
    const written = store.log.commit({ facts: TWO, cursor: '2' })
    written.catch(() => undefined)
    await until('a question', () => questions > 0)
    await pause(100)
    await admin.query(`${database} RESET default_transaction_read_only`)
    wire.cutAll()
    expect((await written).facts).toHaveLength(2)
  })

  it('is found to be rolled back when it never arrived, and is refused whole', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    wire.onRequest = (bytes) => {
      if (!bytes.includes(COMMIT)) return 'pass'
      wire.onRequest = () => 'pass'
      return 'cut'
    }
    await expect(store.log.commit({ facts: TWO, cursor: '2' })).rejects.toMatchObject({ kind: 'unreachable' })
    expect(await seqsIn(store)).toEqual([])
    expect(await store.settings.checkpoint('stream')).toBeNull()
    expect((await store.log.commit({ facts: TWO, cursor: '2' })).facts).toHaveLength(2)
  })
})

/** In the answer to the one statement of a frame: the name of a column. */
const EXTENDED = Buffer.from('pending\0')

// A frame that comes alone is one statement, which is a transaction by itself: with its answer, the results are lost.
describe('the commit of a single frame', () => {
  it('is one statement without a transaction around it', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    const sent: string[] = []
    wire.onRequest = (bytes) => {
      sent.push(...['BEGIN', 'frame 1', 'frame 2', 'COMMIT'].filter((text) => bytes.includes(text)))
      return 'pass'
    }
    await store.log.commit(FRAME)
    await store.log.commit({ facts: [frameFact(2)], cursor: '2' })
    expect(sent).toEqual(['frame 1', 'frame 2'])
    expect(await seqsIn(store)).toEqual(['1', '2'])
    expect(await store.settings.checkpoint('stream')).toBe('2')
  })

  it('fails when its answer is lost, and its retry finds the fact there: the lanes are looked at, and have it', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    wire.onAnswer = (bytes) => (bytes.includes(EXTENDED) ? 'cut' : 'pass')
    await expect(store.log.commit(FRAME)).rejects.toMatchObject({ kind: 'unreachable' })
    wire.onAnswer = () => 'pass'
    const woken: Wake[] = []
    const order: string[] = []
    store.shards.subscribe({ woken: (wake) => woken.push(wake), missed: () => order.push('missed') })
    const committed = await store.log.commit(FRAME).then((result) => (order.push('committed'), result))
    expect(committed).toMatchObject({ facts: [], lanes: [] })
    expect(woken).toMatchObject([{ topics: new Set(WAKE_TOPICS) }])
    // A lane in memory lacks the frame: it must be read again before what this commit adds to it.
    expect(order).toEqual(['missed', 'committed'])
    expect(seqs(await read(store, await laneOf(store)))).toEqual(['1'])
    await store.log.commit({ facts: [frameFact(2)], cursor: '2' })
    expect(woken).toHaveLength(1)
  })

  it('is a failed one like any other where the server refused it: nothing is looked for', async () => {
    const url = await createDatabase()
    const { store } = await openAt(url)
    const admin = await adminOf(url)
    await admin.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$;
       CREATE TRIGGER refuse BEFORE INSERT ON sidecar.facts EXECUTE FUNCTION refuse()`,
    )
    let missed = 0
    store.shards.subscribe({ missed: () => missed++ })
    await expect(store.log.commit(FRAME)).rejects.toMatchObject({ kind: 'full' })
    await admin.query('DROP TRIGGER refuse ON sidecar.facts')
    expect((await store.log.commit(FRAME)).facts).toHaveLength(1)
    expect(missed).toBe(0)
  })

  it('stores nothing where the server receives it after a later one', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    await store.log.commit(FRAME)
    wire.onRequest = (bytes) => (bytes.includes('frame 2') ? 'late' : 'pass')
    const refused = store.log.commit({ facts: [frameFact(2)], cursor: '2' })
    await expect(refused).rejects.toMatchObject({ kind: 'unreachable' })
    wire.onRequest = () => 'pass'
    await store.log.commit({ facts: [frameFact(3)], cursor: '3' })
    await wire.sendLate()
    expect(await seqsIn(store)).toEqual(['1', '3'])
    expect(await store.settings.checkpoint('stream')).toBe('3')
    await store.log.commit({ facts: [frameFact(2)] })
    expect(await seqsIn(store)).toEqual(['1', '3', '2'])
  })

  it('is refused whole by the fence of a process that has taken over', async () => {
    const url = await createDatabase()
    const { store, lost } = await openAt(url)
    const admin = await adminOf(url)
    await admin.query(
      "UPDATE sidecar.replicas SET until = '-infinity'; SELECT sidecar.take_over(id) FROM sidecar.replicas",
    )
    await expect(store.log.commit(FRAME)).rejects.toMatchObject({ kind: 'fenced' })
    expect(lost).toHaveLength(1)
    const { rows } = await admin.query('SELECT id FROM sidecar.facts')
    expect(rows).toEqual([])
  })
})

describe('a transaction that takes its rows for new, and finds one there', () => {
  /** `refused`: how many statements failed because of such a row. */
  async function openCounted() {
    const wire = await Wire.to(await createDatabase())
    const clock = new VirtualClock()
    const store = await openPostgresStore(
      { database: { url: wire.url }, clock, log: keepingLog(), random: systemRandom() },
      { lease: systemClock() },
    )
    onTestFinished(() => store.close())
    await store.shards.join()
    await store.settings.registerHandlers([everything('app')])
    const counted = { store, clock, refused: 0 }
    wire.onAnswer = (bytes) => {
      if (bytes.includes('C23505')) counted.refused++
      return 'pass'
    }
    return counted
  }
  const three = { facts: [...TWO, frameFact(3)], cursor: '3' }

  it('stores the frames that are new', async () => {
    const counted = await openCounted()
    const { store } = counted
    const [first] = (await store.log.commit({ facts: TWO, cursor: '2' })).lanes
    const committed = await store.log.commit(three)
    expect(committed.facts.map(({ seq }) => seq)).toEqual(['3'])
    expect(committed.lanes.flatMap(({ deliveries }) => seqs(deliveries))).toEqual(['3'])
    expect(first && seqs(await read(store, first.lane))).toEqual(['1', '2', '3'])
    expect(counted.refused).toBe(1)
  })

  it('stores a frame that came alone once', async () => {
    const counted = await openCounted()
    await counted.store.log.commit(FRAME)
    expect(await counted.store.log.commit(FRAME)).toMatchObject({ facts: [], lanes: [] })
    expect(counted.refused).toBe(1)
  })

  it('adds the outcome of a replayed delivery to the earlier one', async () => {
    const counted = await openCounted()
    const { store } = counted
    const [first] = (await store.log.commit(FRAME)).lanes
    const deliver = async (lane: Lane) => {
      const [delivery] = await read(store, lane)
      if (delivery === undefined) throw new Error('nothing is pending')
      await store.log.commit({ acks: () => [ack(lane, delivery, 'delivered')] })
      await store.lanes.release(lane)
    }
    if (first !== undefined) await deliver(first.lane)
    await store.operator.replay('app', { seq: '1' })
    await deliver(await laneOf(store))
    expect(await store.lanes.claim({ handler: 'app', lanes: 1 })).toEqual([])
    const { rows } = await store.read.deliveries({ limit: 10 })
    expect(rows).toMatchObject([{ status: 'delivered', attempts: [{ status: 200 }, { status: 200 }] }])
    expect(counted.refused).toBe(1)
  })

  it('stores the frames and the outcomes of one transaction, whichever of them are there', async () => {
    for (const again of ['frames', 'outcomes']) {
      const counted = await openCounted()
      const { store } = counted
      const committed = await store.log.commit({ facts: [...TWO, frameFact(3, 'ses_2')], cursor: '3' })
      const acks = committed.lanes.flatMap(({ lane, deliveries: [first] }) =>
        first === undefined ? [] : [ack(lane, first, lane.key === 'ses_2' ? 'retry' : 'delivered')],
      )
      if (again === 'outcomes') await store.log.commit({ acks: () => acks.slice(0, 1) })
      const seq = again === 'frames' ? 2 : 4
      const [frames] = await Promise.all([
        store.log.commit({ facts: [frameFact(seq), frameFact(5)], cursor: '5' }),
        store.log.commit({ acks: () => acks }),
      ])
      expect(frames.facts.map(({ seq }) => seq)).toEqual(again === 'frames' ? ['5'] : ['4', '5'])
      expect(counted.refused).toBe(1)
      const { rows } = await store.read.deliveries({ limit: 10 })
      const statuses = rows.map(({ status, attempts }) => `${status} ${attempts.length}`)
      const left = again === 'frames' ? 2 : 3
      expect(statuses.toSorted((a, b) => a.localeCompare(b))).toEqual([
        'delivered 1',
        ...Array.from({ length: left }, () => 'pending 0'),
        'pending 1',
      ])
      await store.close()
    }
  })

  it('fails once a minute: until then, transactions look first', async () => {
    const counted = await openCounted()
    const { store, clock } = counted
    await store.log.commit(three)
    for (const batch of [three, three, FRAME]) expect((await store.log.commit(batch)).facts).toEqual([])
    expect(counted.refused).toBe(1)
    await clock.leap(60_000)
    expect((await store.log.commit(three)).facts).toEqual([])
    expect(counted.refused).toBe(2)
  })
})

it('a COMMIT that the server answers with ROLLBACK is no commit', async () => {
  const database = await openDatabase({ url: await createDatabase() }, () => undefined)
  onTestFinished(() => database.close())
  const transaction = await database.begin()
  await transaction.rows('SELECT 1 / 0').catch(() => undefined)
  await expect(transaction.commit()).rejects.toMatchObject({ name: 'StoreError' })
})

// BEGIN and the first statements are sent together: one whose BEGIN was cancelled would otherwise write by itself.
it('a statement outside of a transaction writes nothing', async () => {
  const url = await createDatabase()
  const database = await openDatabase({ url }, () => undefined)
  onTestFinished(() => database.close())
  const making = await database.begin()
  await making.script('CREATE TABLE written (one int)')
  await making.commit()
  const transaction = await database.begin()
  await transaction.script('ROLLBACK')
  const refused = { name: 'StoreError', cause: { code: '25006' } }
  await expect(transaction.change('INSERT INTO written VALUES (1)')).rejects.toMatchObject(refused)
  await transaction.rollback()
  expect(await database.rows('SELECT one FROM written')).toEqual([])
})

it('a transaction whose BEGIN is lost may be given up before its first statement', async () => {
  const wire = await Wire.to(await createDatabase())
  const database = await openDatabase({ url: wire.url }, () => undefined)
  onTestFinished(() => database.close())
  await (await database.begin()).rollback()
  wire.onRequest = (bytes) => (bytes.includes('BEGIN') ? 'cut' : 'pass')
  await (await database.begin()).rollback()
  wire.onRequest = () => 'pass'
  const transaction = await database.begin()
  expect(await transaction.rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
  await transaction.rollback()
})

it('a database that an administrator has set to read-only stays so', async () => {
  const url = await createDatabase()
  const admin = await adminOf(url)
  await admin.query('CREATE TABLE written (one int)')
  await admin.query(`${alterDatabase(url)} SET default_transaction_read_only = on`)
  const database = await openDatabase({ url }, () => undefined)
  onTestFinished(() => database.close())
  const transaction = await database.begin()
  const refused = { name: 'StoreError', kind: 'unreachable' }
  await expect(transaction.change('INSERT INTO written VALUES (1)')).rejects.toMatchObject(refused)
  await transaction.rollback()
})

it('a connection made while the database was read-only is not used again', async () => {
  const url = await createDatabase()
  const wire = await Wire.to(url)
  const { store } = await openAt(wire.url)
  const admin = await adminOf(url)
  const database = alterDatabase(url)
  await admin.query(`${database} SET default_transaction_read_only = on`)
  wire.cutAll()
  await expect.poll(() => codeOfCommit(store, 1)).toBe('unreachable: 25006')
  await admin.query(`${database} RESET default_transaction_read_only`)
  expect(await codeOfCommit(store, 1)).toBe('committed')
})

// DNS leads to the old primary for some seconds after it became a standby, which keeps its connections.
it('after a failover, the old primary is a standby, and no connection leads to it', async () => {
  const [old, next] = await Promise.all([PostgresServer.start([]), PostgresServer.start([])])
  onTestFinished(() => Promise.all([old.stop(), next.stop()]).then(() => undefined))
  const wire = await Wire.to(old.url())
  const { store, lost } = await openAt(wire.url)
  expect(await codeOfCommit(store, 1)).toBe('committed')
  const [from, to] = await Promise.all([dataOf(old), dataOf(next)])
  await Promise.all([old.kill(), next.kill()])
  execFileSync('rm', ['-r', to])
  execFileSync('cp', ['-a', from, to])
  rmSync(path.join(to, 'postmaster.pid'))
  execFileSync('cp', ['-a', path.join(from, 'PG_VERSION'), path.join(from, 'standby.signal')])
  await Promise.all([old.run(), next.run()])
  await expect.poll(() => codeOfCommit(store, 2)).toBe('unreachable: standby')
  wire.target = new URL(next.url())
  expect(await codeOfCommit(store, 2)).toBe('committed')
  expect(await seqsIn(store)).toEqual(['1', '2'])
  expect(lost).toEqual([])
})

it('patient outcomes do not join the transaction of a frame, and are stored in time', async () => {
  const { store } = await openAt(await createDatabase())
  const order: string[] = []
  await store.log.commit({ facts: [frameFact(1)], cursor: '1' })
  const acks = store.log.commit({ acks: () => [] }, 200).then(() => order.push('outcomes'))
  await store.log.commit({ facts: [frameFact(2)], cursor: '2' })
  order.push('frame')
  await acks
  expect(order).toEqual(['frame', 'outcomes'])
})

// Each held the lock of all replicas for some thousand round trips: with 1 ms each, their writes waited for seconds.
describe('a transaction that other replicas wait for has few round trips', () => {
  async function openCounted() {
    const wire = await Wire.to(await createDatabase())
    const { store } = await openAt(wire.url)
    let trips = 0
    wire.onRequest = () => (trips++, 'pass')
    return { store, admin: await adminOf(wire.url), trips: () => trips }
  }

  it('where 2,000 facts of 700 sessions are replayed', async () => {
    const { store, trips } = await openCounted()
    const facts = Array.from({ length: 2000 }, (_, nth) => frameFact(nth + 1, `ses_${nth % 700}`))
    const { lanes } = await store.log.commit({ facts })
    await store.log.commit({
      acks: () =>
        lanes.flatMap(({ lane, deliveries }) =>
          deliveries.map((delivery) => ack(lane, delivery, 'delivered')),
        ),
    })
    const before = trips()
    expect(await store.operator.replay('app', { at: 0 })).toEqual({ count: 2000 })
    expect(trips() - before).toBeLessThan(60)
    for (const { lane } of lanes) await store.lanes.release(lane)
    const again = await store.lanes.claim({ handler: 'app', lanes: 1000 })
    const pending = await Promise.all(again.map((lane) => read(store, lane)))
    expect(pending.flat()).toHaveLength(2000)
    expect(
      pending.every((of) =>
        seqs(of).every((seq, nth, all) => nth === 0 || Number(all[nth - 1]) < Number(seq)),
      ),
    ).toBe(true)
  })

  it('where 250 deleted sessions with their turns are pruned', async () => {
    const { store, admin, trips } = await openCounted()
    await admin.query(
      `INSERT INTO sidecar.sessions SELECT 'ses_' || n, 'idle', 1, '{}', NULL, 1, 1, 0, 1, 1, 1 FROM generate_series(1, 250) AS n;
       INSERT INTO sidecar.turns (id, session_id) SELECT 'trn_' || n, 'ses_' || n % 250 + 1 FROM generate_series(1, 800) AS n`,
    )
    const before = trips()
    while ((await store.log.prune(0)).more);
    expect(trips() - before).toBeLessThan(150)
    const { rows } = await admin.query(
      'SELECT id FROM sidecar.sessions UNION ALL SELECT id FROM sidecar.turns',
    )
    expect(rows).toEqual([])
  })
})

describe('under load', () => {
  it.runIf(FULL)(
    'loses no acknowledged write when the server is killed repeatedly, and continues',
    async () => {
      const server = await PostgresServer.start([])
      onTestFinished(() => server.stop())
      const { store, lost } = await openAt(server.url())
      const load = commitOn(store)
      for (let times = 0; times < 3; times++) {
        const before = load.stored.length
        await expect.poll(() => load.stored.length).toBeGreaterThan(before + 20)
        await server.kill()
        await server.run()
      }
      const before = load.stored.length
      await expect.poll(() => load.stored.length).toBeGreaterThan(before + 20)
      await load.stop()
      expect(await seqsIn(store)).toEqual(load.stored)
      expect(await store.settings.checkpoint('stream')).toBe(load.stored.at(-1))
      expect([...load.kinds]).toEqual(['unreachable'])
      expect(lost).toEqual([])
    },
  )

  it('loses nothing when its connections are ended by an administrator, or cut, at any moment', async () => {
    const url = await createDatabase()
    const wire = await Wire.to(url)
    const { store, lost } = await openAt(wire.url)
    const admin = await adminOf(url)
    const load = commitOn(store)
    for (let times = 0; times < 20; times++) {
      const before = load.stored.length
      await expect.poll(() => load.stored.length, { interval: 1 }).toBeGreaterThan(before + (times % 5))
      if (times % 2 === 0) wire.cutAll()
      else
        await admin.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agent-session-sidecar' AND datname = current_database()",
        )
    }
    await load.stop()
    // The end of a connection may arrive only with the next read on it, which fails.
    await expect.poll(() => seqsIn(store)).toEqual(load.stored)
    expect([...load.kinds].filter((kind) => kind !== 'unreachable')).toEqual([])
    expect(lost).toEqual([])
  })

  it('logs that idle connections broke, and how often', async () => {
    const url = await createDatabase()
    const { log } = await openProcess(url)
    const admin = await adminOf(url)
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agent-session-sidecar' AND datname = current_database()",
    )
    await expect
      .poll(() =>
        log.lines.filter(({ message }) => message.startsWith('store: connections to the database broke')),
      )
      .toMatchObject([{ details: { times: 1, error: expect.any(String) } }])
  })
})

describe('the lease', () => {
  it('that cannot be renewed in time: nothing is read or written until it is renewed, if no process took it', async () => {
    const wire = await Wire.to(await createDatabase())
    const lease = new VirtualClock()
    const { store, lost } = await openAt(wire.url, lease)
    wire.onRequest = () => 'cut'
    await lease.advance(12_100)
    await expect(store.log.commit({ facts: [frameFact(1)] })).rejects.toMatchObject({ kind: 'unreachable' })
    await expect(store.hints.nextDue()).rejects.toMatchObject({ kind: 'unreachable' })
    expect(lost).toEqual([])
    wire.onRequest = () => 'pass'
    await expect
      .poll(async () => {
        await lease.advance(500)
        return await store.hints.nextDue().catch(() => 'refused')
      })
      .toBeNull()
    expect((await store.log.commit({ facts: [frameFact(1)] })).facts).toHaveLength(1)
  })
})

describe('texts', () => {
  it('are read back unchanged: NUL, halves of pairs, the mark itself, and keys in their order', async () => {
    const { store } = await openAt(await createDatabase())
    const bodies = [
      '{"z":1,"a":"\\u0000\0"}',
      '"\uD800 \uDC00 \uD83D\uDE00 \uDE00\uD83D"',
      '"\uE000 \uE0000041 \uE000d800"',
      JSON.stringify({ big: 1, text: 'ä€😀' }).replace('1', '12345678901234567890'),
    ]
    await store.log.commit({
      facts: bodies.map((body, index) => frameFact(index + 1, `ses_\0${index}\uD800`, { body })),
    })
    const { rows } = await store.read.facts({ limit: 10, order: 'asc' })
    expect(rows.map(({ body }) => body)).toEqual(bodies)
    expect(rows.map(({ sessionId }) => sessionId)).toEqual(bodies.map((_, index) => `ses_\0${index}\uD800`))
    const found = await store.read.facts({ limit: 10, order: 'asc', sessionId: 'ses_\x001\uD800' })
    expect(found.rows.map(({ seq }) => seq)).toEqual(['2'])
  })

  it('are in the order of their bytes, whatever the locale of the server', async () => {
    const { store } = await openAt(await createDatabase())
    const names = ['b', 'B', 'a', 'ä', 'Z', '_', '1', 'z']
    const owners = names.map((name) => ({ sessionId: name, owner: 'ours', at: 1 }) as const)
    await store.log.commit({ scoped: true, owners })
    const bytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(await store.resources.strangers(-1000, '', 100)).toEqual(bytes)
  })
})

/** Two facts are in it, and no process has it open. */
async function writtenDatabase(): Promise<string> {
  const url = await createDatabase()
  const { store } = await openAt(url)
  await store.log.commit({ facts: TWO, cursor: '2' })
  await store.close()
  return url
}

it('the check of a database finds facts that have changed, and lanes that do not fit their deliveries', async () => {
  const url = await writtenDatabase()
  await administer(
    url,
    "UPDATE sidecar.facts SET body = body || ' ' WHERE pos = 1; UPDATE sidecar.lanes SET pending = pending + 1",
  )
  expect((await inspectDatabase({ url })).problems).toEqual([
    expect.stringContaining('(position 1) has changed: its checksum does not match'),
    expect.stringContaining('lanes have a wrong number of pending deliveries'),
  ])
})

it.runIf(FULL)('the check of a whole database may take longer than a statement of a sidecar', async () => {
  const url = await writtenDatabase()
  // The first look at the deliveries takes as long as with many millions of them.
  await administer(
    url,
    `CREATE SEQUENCE looks;
     ALTER VIEW sidecar.deliveries RENAME TO deliveries_now;
     CREATE VIEW sidecar.deliveries AS SELECT d.* FROM sidecar.deliveries_now d,
       (SELECT CASE nextval('looks') WHEN 1 THEN pg_sleep(11) END) AS slow`,
  )
  expect(await inspectDatabase({ url })).toMatchObject({ facts: 2, pending: 2, problems: [] })
})

describe('a handler that is made ordered', () => {
  it('starts while a replica that has it unordered adds more and more facts', async () => {
    const url = await createDatabase()
    const older = await openProcess(url)
    await older.store.shards.join()
    await older.store.settings.registerHandlers([everything('app', { ordered: false })])
    let goes = true
    let seq = 0
    const add = async () => {
      while (goes) {
        const facts = Array.from({ length: 500 }, () => frameFact(++seq))
        await older.store.log.commit({ facts })
      }
    }
    const added = Promise.all([add(), add()])
    await until('facts', () => seq > 1000)
    const newer = await openProcess(url)
    try {
      await newer.store.settings.registerHandlers([everything('app')])
    } finally {
      goes = false
      await added
    }
    const moved = (await older.store.lanes.claim({ handler: 'app', lanes: 100_000 })).filter(
      ({ key }) => key === 'ses_1',
    )
    expect(moved).toHaveLength(1)
  })

  it.runIf(RELEASE)(
    'gets a backlog in the order of each session, moved by several transactions',
    async () => {
      const url = await createDatabase()
      const first = await openProcess(url)
      await first.store.shards.join()
      await first.store.settings.registerHandlers([everything('app', { ordered: false })])
      const facts = Array.from({ length: BACKLOG }, (_, at) => frameFact(at + 1, `ses_${at % 2}`))
      for (let at = 0; at < BACKLOG; at += 1000)
        await first.store.log.commit({ facts: facts.slice(at, at + 1000) })
      await first.store.close()

      const { store, commits } = await openProcess(url)
      await store.shards.join()
      const before = commits.length
      await store.settings.registerHandlers([everything('app')])
      // One registers the handler, and two move a part each.
      expect(commits.length - before).toBe(3)
      const lanes = await store.lanes.claim({ handler: 'app', lanes: 10 })
      expect(lanes.map(({ key }) => key).toSorted()).toEqual(['ses_0', 'ses_1'])
      for (const lane of lanes) {
        const { deliveries: pending } = await store.lanes.read(lane, 0, BACKLOG, 1e12)
        expect(seqs(pending)).toEqual(
          facts.filter((fact) => fact.sessionId === lane.key).map(({ seq }) => seq),
        )
      }
    },
  )
})
