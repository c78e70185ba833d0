import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CallRoom } from '../../src/core/call.ts'
import type { Ack, Lane } from '../../src/core/delivery.ts'
import type { Hint } from '../../src/core/hint.ts'
import { SHARDS, shardOf, WAKE_TOPICS, type Wake, type WakeTopic } from '../../src/core/shards.ts'
import type { TransientEvent } from '../../src/core/observer.ts'
import { StoreError } from '../../src/core/store-error.ts'
import type { Store } from '../../src/core/store.ts'
import { Membership, type LeaseTable, type Survey } from '../../src/sidecar/store/membership.ts'
import type { Clock } from '../../src/std/ports.ts'
import { systemClock } from '../../src/system/clock.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { createDatabase } from '../support/postgres.ts'
import { Wire } from '../support/postgres-wire.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'
import { openDatabase } from '../../src/sidecar/store/postgres/database.ts'
import { knownVersion, migrate, versionOf } from '../../src/sidecar/store/postgres/schema.ts'
import { inspectDatabase } from '../../src/sidecar/store/postgres/inspect.ts'
import { lookupCall } from './call.ts'
import { everything } from './database.ts'
import { adminOf, openProcess } from './process.ts'
import type { Appearance } from '../../src/sidecar/store/postgres/store.ts'
import { ack, acknowledge, laneOf, read, seqs } from './lane.ts'
import { readingOf } from './reading.ts'

const SESSIONS = Array.from({ length: 400 }, (_, index) => `ses_${index}`)
const ROOM: CallRoom = { others: 9, of: () => 9 }

interface Replica {
  store: Store
  id: string
  owned: Set<number>
  wakes: Wake[]
  transients: TransientEvent[]
  lost: StoreError[]
  renewals: string[]
}

/** A process on the database that has joined. */
async function replica(url: string, lease: Clock = systemClock(), more: Appearance = {}): Promise<Replica> {
  const renewals: string[] = []
  const { store, lost } = await openProcess(url, lease, {
    name: 'test',
    version: '0',
    onRenewal: (outcome) => renewals.push(outcome),
    ...more,
  })
  const owned = new Set<number>()
  const wakes: Wake[] = []
  const transients: TransientEvent[] = []
  store.shards.subscribe({
    gained: (shards) => shards.forEach((shard) => owned.add(shard)),
    lost: (shards) => shards.forEach((shard) => owned.delete(shard)),
    woken: (wake) => wakes.push(wake),
    transientShared: (event) => transients.push(event),
  })
  await store.settings.registerHandlers([everything('app')])
  await store.shards.join()
  const id = (await store.shards.replicas()).find(({ self }) => self)?.id ?? ''
  return { store, id, owned, wakes, transients, lost, renewals }
}

/** One of two processes, with nothing to take. */
const SURVEY: Survey = {
  others: new Map([['other', { renewal: '', isOver: false, joined: true }]]),
  free: { leader: false, shards: 0 },
  streamConnected: false,
  noted: new Map(),
}

/** The process `me` without a database. `table`: what differs from a table in which nothing happens. */
function memberOf(clock: Clock, table: Partial<LeaseTable>): Membership {
  const quiet: LeaseTable = {
    renew: async () => true,
    survey: async () => SURVEY,
    fence: async () => undefined,
    take: async () => [],
    release: async () => undefined,
  }
  const membership = new Membership({ id: 'me', clock, claimed: () => 0, table: { ...quiet, ...table } })
  onTestFinished(() => membership.stop())
  return membership
}

async function several(url: string, count: number): Promise<Replica[]> {
  const all: Replica[] = []
  for (let nth = 0; nth < count; nth++) all.push(await replica(url))
  await spread(all)
  return all
}

/** Waits until each has at most its share, and all together everything. */
async function spread(all: readonly Replica[]): Promise<void> {
  const share = Math.ceil(SHARDS / all.length)
  await until('even spread', () => {
    const counts = all.map(({ owned }) => owned.size)
    return counts.every((count) => count <= share) && counts.reduce((sum, count) => sum + count) === SHARDS
  })
}

/** As another process, which has seen no renewal for long enough. */
async function takeOver(other: Client, { id }: Replica): Promise<void> {
  await other.query(
    'SELECT sidecar.take_over(id, extract(epoch FROM seen)) FROM sidecar.replicas WHERE id = $1',
    [id],
  )
}

/** As 15 s after its last renewal. */
async function expire(admin: Client, { id }: Replica): Promise<void> {
  await admin.query("UPDATE sidecar.replicas SET until = clock_timestamp() - interval '1 ms' WHERE id = $1", [
    id,
  ])
}

async function isWaiting(admin: Client): Promise<boolean> {
  const { rows } = await admin.query(
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
  )
  return rows.length > 0
}

/** Ends the processes: a connection reports its deadlocks at its end, at the latest. */
async function deadlocksOf(admin: Client, all: readonly Pick<Replica, 'store'>[]): Promise<number> {
  for (const { store } of all) await store.close()
  await until('the end of the connections', async () => {
    const { rows } = await admin.query(
      'SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    return rows.length === 0
  })
  const { rows } = await admin.query<{ deadlocks: number }>(
    'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
  )
  return rows[0]?.deadlocks ?? Number.NaN
}

const sessionOf = ({ store }: Replica): string => SESSIONS.find((id) => store.shards.owns(id)) ?? ''

const heard = ({ wakes }: Replica, topic: WakeTopic): boolean => wakes.some(({ topics }) => topics.has(topic))

const hint = (sessionId: string | null, more: Partial<Hint> = {}): Hint => ({
  sessionId,
  channel: 'webhook',
  at: 100,
  scope: 'session',
  delay: 0,
  ...more,
})

describe('shards', () => {
  it('spread evenly over the live processes: 64; 32/32; 22/22/20; and back when one leaves', async () => {
    const url = await createDatabase()
    const first = await replica(url)
    expect(first.owned.size).toBe(SHARDS)
    expect(first.store.shards.leads).toBe(true)
    const second = await replica(url)
    await spread([first, second])
    const third = await replica(url)
    await spread([first, second, third])
    expect([first, second, third].map(({ owned }) => owned.size).toSorted((a, b) => a - b)).toEqual([
      20, 22, 22,
    ])
    for (const id of SESSIONS)
      expect([first, second, third].filter(({ store }) => store.shards.owns(id))).toHaveLength(1)
    const records = await third.store.shards.replicas()
    expect(records).toMatchObject([{ leads: true }, { leads: false }, { leads: false, self: true }])
    const stopped = performance.now()
    await first.store.shards.leave()
    await first.store.close()
    await spread([second, third])
    await until('a leader', () => [second, third].find(({ store }) => store.shards.leads))
    expect(performance.now() - stopped).toBeLessThan(3000)
  })

  it('of a process that is gone go at once to the one that starts on its machine', async () => {
    const url = await createDatabase()
    const begun = performance.now()
    const killed = await replica(url, systemClock(), {
      process: { identify: () => 'killed', isGone: () => false },
    })
    const other = await replica(url, systemClock(), {
      process: { identify: () => 'other', isGone: () => false },
    })
    await spread([killed, other])
    const asked: string[] = []
    const isGone = (name: string): boolean => asked.push(name) > 0 && name === 'killed'
    const next = await replica(url, systemClock(), { process: { identify: () => 'next', isGone } })
    await spread([other, next])
    // The leases would have lasted longer.
    expect(performance.now() - begun).toBeLessThan(12_000)
    expect(asked.toSorted()).toEqual(['killed', 'other'])
    await expect(killed.store.log.commit({ facts: [frameFact(1, sessionOf(killed))] })).rejects.toThrow(
      StoreError,
    )
    expect(other.lost).toEqual([])
  })

  it('and the lead are given up by a busy process that leaves, except shards with work in flight', async () => {
    const url = await createDatabase()
    const first = await replica(url)
    const second = await replica(url)
    await spread([first, second])
    const session = sessionOf(first)
    const { lanes } = await first.store.log.commit({ facts: [frameFact(1, session)] })
    expect(lanes[0]?.claimed).toBe(true)
    await first.store.shards.leave()
    await until('the lead', () => second.store.shards.leads, 3000)
    await until('the shards', () => second.owned.size === SHARDS - 1, 3000)
    expect(first.store.shards.leads).toBe(false)
    expect([...first.owned]).toEqual([shardOf(session)])
  })

  it('arrive as the work in flight ends, and nothing is claimed by two', async () => {
    const url = await createDatabase()
    const first = await replica(url)
    const { lanes } = await first.store.log.commit({
      facts: SESSIONS.map((id, index) => frameFact(index + 1, id)),
    })
    expect(lanes.every(({ claimed }) => claimed)).toBe(true)
    const second = await replica(url)
    await pause(500)
    expect(second.owned.size).toBe(0)
    const claimed = new Set(SESSIONS)
    for (const [index, { lane }] of lanes.entries()) {
      await first.store.lanes.release(lane)
      claimed.delete(lane.key)
      if (index % 20 !== 0) continue
      for (const { store } of [first, second])
        for (const { key } of await store.lanes.claim({ handler: 'app', lanes: 5 })) {
          expect(claimed.has(key)).toBe(false)
          claimed.add(key)
        }
    }
    await until('shards of the second', () => second.owned.size > 0)
    for (const { key } of await second.store.lanes.claim({ handler: 'app', lanes: 400 }))
      expect(claimed.has(key)).toBe(false)
  })

  it('that stay busy are kept, and the others go', async () => {
    const url = await createDatabase()
    const first = await replica(url)
    const session = SESSIONS.filter((id) => shardOf(id) < 50).slice(0, 1)
    const { lanes } = await first.store.log.commit({
      facts: session.map((id, index) => frameFact(index + 1, id)),
    })
    const second = await replica(url)
    await spread([first, second])
    const [lane] = lanes
    expect(lane?.claimed).toBe(true)
    expect(first.store.shards.owns(session[0] ?? '')).toBe(true)
    expect(await second.store.lanes.claim({ handler: 'app', lanes: 9 })).toEqual([])
  })
})

describe('a process that stops renewing', () => {
  it('loses its shards and the lead, and its late write is refused', async () => {
    const url = await createDatabase()
    const admin = await adminOf(url)
    const frozen = await replica(url, new VirtualClock())
    const second = await replica(url)
    expect(second.owned.size).toBe(0)
    const { lanes } = await frozen.store.log.commit({ facts: [frameFact(1)] })
    const [extension] = lanes
    if (extension?.deliveries[0] === undefined) throw new Error('no lane')
    await expire(admin, frozen)
    await spread([second])
    expect(second.store.shards.leads).toBe(true)
    const late = ack(extension.lane, extension.deliveries[0], 'delivered')
    await expect(frozen.store.log.commit({ acks: () => [late] })).rejects.toMatchObject({ kind: 'fenced' })
    await expect(frozen.store.lanes.claim({ handler: 'app', lanes: 1 })).rejects.toMatchObject({
      kind: 'fenced',
    })
    expect(frozen.lost).toMatchObject([{ kind: 'fenced' }])
    const [lane] = await second.store.lanes.claim({ handler: 'app', lanes: 9 })
    expect(lane?.key).toBe('ses_1')
    expect(lane?.lease.epoch).toBeGreaterThan(extension.lane.lease.epoch)
  })

  it('finds that it is fenced by its next renewal, which gives nothing back to it', async () => {
    const url = await createDatabase()
    const admin = await adminOf(url)
    const lease = new VirtualClock()
    const frozen = await replica(url, lease)
    const second = await replica(url)
    await expire(admin, frozen)
    await spread([second])
    await lease.advance(5000)
    await until('the loss', () => frozen.lost.length > 0)
    expect(frozen.renewals.at(-1)).toBe('fenced')
    expect(
      await admin.query('SELECT 1 FROM sidecar.replicas WHERE fenced AND until > clock_timestamp()'),
    ).toMatchObject({
      rowCount: 0,
    })
  })

  it('stops by itself before its time is over', async () => {
    const wire = await Wire.to(await createDatabase())
    const lease = new VirtualClock()
    const { store, lost } = await replica(wire.url, lease)
    wire.onRequest = () => 'cut'
    await lease.advance(12_100)
    await expect(store.log.commit({ facts: [frameFact(1)] })).rejects.toMatchObject({ kind: 'unreachable' })
    expect(lost).toEqual([])
  })

  it('renews so often that one renewal may fail', async () => {
    const lease = new VirtualClock()
    const { store, renewals } = await replica(await createDatabase(), lease)
    const before = renewals.length
    // Twice in less than the 12 s after which it stops by itself.
    for (let nth = 1; nth <= 2; nth++) {
      await lease.advance(5000)
      await until('a renewal', () => renewals.length >= before + nth)
    }
    await store.hints.nextDue()
  })

  it('renews while every connection for reads waits for the database', async () => {
    const url = await createDatabase()
    const [other, admin] = [await adminOf(url), await adminOf(url)]
    const lease = new VirtualClock()
    const { store, renewals } = await replica(url, lease)
    await other.query('BEGIN')
    await other.query('LOCK TABLE sidecar.facts, sidecar.hints IN ACCESS EXCLUSIVE MODE')
    const reads = Promise.all(
      Array.from({ length: 8 }, () => [
        store.read.facts({ limit: 1, order: 'asc' }),
        store.hints.nextDue(),
      ]).flat(),
    )
    reads.catch(() => undefined)
    await until('reads that wait', async () => {
      const { rows } = await admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      )
      return rows.length >= 5
    })
    const before = renewals.length
    await lease.advance(5000)
    await until('a renewal', () => renewals.length > before, 5000)
    expect(renewals.at(-1)).toBe('renewed')
    await other.query('ROLLBACK')
    await reads
  })

  // Four pages of the admin API that scanned ten million facts stopped all deliveries.
  it('delivers, and serves the relay, while every connection for people waits for the database', async () => {
    const url = await createDatabase()
    const [other, admin] = [await adminOf(url), await adminOf(url)]
    const { store } = await replica(url)
    await until('the shards', () => store.shards.owns('ses_1'))
    await store.log.commit({ facts: [frameFact(1)] })
    await other.query('BEGIN')
    await other.query('LOCK TABLE sidecar.calls IN ACCESS EXCLUSIVE MODE')
    const reads = Promise.all(Array.from({ length: 8 }, () => store.read.calls({ limit: 1 })))
    reads.catch(() => undefined)
    await until('reads that wait', async () => {
      const { rows } = await admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      )
      return rows.length >= 2
    })
    // The commit gave the lane to this process: no other one is due.
    expect(await store.lanes.claim({ handler: 'app', lanes: 1 })).toEqual([])
    expect((await store.read.frames({ after: 0 })).frames).toHaveLength(1)
    expect(await store.read.handlers()).not.toEqual([])
    await other.query('ROLLBACK')
    await reads
  })

  it('has its attempts recorded as interrupted, and those of the living are left alone', async () => {
    const url = await createDatabase()
    const admin = await adminOf(url)
    const clock = new VirtualClock()
    const frozen = await replica(url, clock)
    const { lanes } = await frozen.store.log.commit({ facts: [frameFact(1, 'ses_1'), frameFact(2, 'ses_2')] })
    await admin.query(
      'INSERT INTO sidecar.begun SELECT fact_pos, handler, 1, $1 FROM sidecar.deliveries WHERE fact_pos = 1',
      [shardOf('ses_1')],
    )
    expect(lanes).toHaveLength(2)
    const second = await replica(url)
    await expire(admin, frozen)
    await spread([second])
    const claimed = await second.store.lanes.claim({ handler: 'app', lanes: 9 })
    const cut = new Map<string, number>()
    for (const lane of claimed)
      for (const delivery of (await second.store.lanes.read(lane, 0, 9, 1e6)).deliveries)
        cut.set(lane.key, delivery.cut)
    expect(cut).toEqual(
      new Map([
        ['ses_1', 1],
        ['ses_2', 0],
      ]),
    )
  })
})

it('two replicas that write hints of the same sessions never wait for each other', async () => {
  const url = await createDatabase()
  const [first, second] = [await replica(url), await replica(url)]
  const admin = await adminOf(url)
  const hint = (sessionId: string): Hint => ({
    sessionId,
    channel: 'webhook',
    at: 1,
    scope: 'turns',
    delay: 0,
  })
  // Writes that are queued together share a transaction, and each has a statement of its own.
  const write = async (store: Store, sessionIds: readonly string[]): Promise<void> => {
    for (let time = 0; time < 50; time++)
      await Promise.all(sessionIds.map((id) => store.log.commit({ hints: [hint(id)] })))
  }
  await Promise.all([write(first.store, ['a', 'b', 'c']), write(second.store, ['c', 'b', 'a'])])
  expect(await deadlocksOf(admin, [first, second])).toBe(0)
})

describe('a takeover', () => {
  it('waits for the write of the former owner that is under way', async () => {
    const url = await createDatabase()
    const frozen = await replica(url, new VirtualClock())
    const [writer, other, admin] = [await adminOf(url), await adminOf(url), await adminOf(url)]
    await writer.query('BEGIN')
    await writer.query('SELECT sidecar.fence($1, 1000, false)', [frozen.id])
    let done = false
    const takeover = takeOver(other, frozen).then(() => (done = true))
    await until('the takeover waits', () => isWaiting(admin))
    expect(done).toBe(false)
    await writer.query('COMMIT')
    await takeover
    const { rows } = await admin.query('SELECT count(*)::int AS free FROM sidecar.leases WHERE owner IS NULL')
    expect(rows).toEqual([{ free: SHARDS + 1 }])
  })

  it.each([
    { level: 'read committed', write: 'a transaction', facts: [frameFact(1), frameFact(2)] },
    { level: 'read committed', write: 'the one statement of a frame', facts: [frameFact(1)] },
    { level: 'repeatable read', write: 'a transaction', facts: [frameFact(1), frameFact(2)] },
    { level: 'repeatable read', write: 'the one statement of a frame', facts: [frameFact(1)] },
  ])(
    'is seen by $write that waited for it, where the server’s default is $level: lock and check do not share a snapshot',
    async ({ level, facts }) => {
      const url = await createDatabase()
      const [other, admin] = [await adminOf(url), await adminOf(url)]
      const [name = ''] = new URL(url).pathname.slice(1).split('?')
      await admin.query(`ALTER DATABASE "${name}" SET default_transaction_isolation = '${level}'`)
      const frozen = await replica(url, new VirtualClock())
      await other.query('BEGIN')
      await takeOver(other, frozen)
      const write = frozen.store.log.commit({ facts })
      const settled = write.then(
        () => 'written',
        (error: StoreError) => error.kind,
      )
      await until('the write waits', () => isWaiting(admin))
      await other.query('COMMIT')
      expect(await settled).toBe('fenced')
      const { rows } = await admin.query('SELECT id FROM sidecar.facts')
      expect(rows).toEqual([])
    },
  )

  it('that waited for a write does nothing when the owner renewed meanwhile', async () => {
    const url = await createDatabase()
    const living = await replica(url, new VirtualClock())
    const [writer, other, admin] = [await adminOf(url), await adminOf(url), await adminOf(url)]
    await writer.query('BEGIN')
    await writer.query('SELECT sidecar.fence($1, 1000, false)', [living.id])
    const takeover = takeOver(other, living)
    await until('the takeover waits', () => isWaiting(admin))
    await admin.query('UPDATE sidecar.replicas SET seen = clock_timestamp() WHERE id = $1', [living.id])
    await writer.query('ROLLBACK')
    await takeover
    expect((await living.store.log.commit({ facts: [frameFact(1)] })).facts).toHaveLength(1)
  })

  /** The process `me` beside the process `other`, whose row is in `row`. */
  async function besideOther(
    row: { isOver: () => boolean; renewal: () => string },
    clock = new VirtualClock(),
  ) {
    const fenced: string[] = []
    /** What reaches the database. */
    let reaches: 'all' | 'reads' | 'nothing' = 'all'
    const ask = <T>(answer: T, of: 'reads' | 'renewals'): Promise<T> =>
      reaches === 'all' || reaches === of ? Promise.resolve(answer) : Promise.reject(new Error('unreachable'))
    const membership = memberOf(clock, {
      renew: () => ask(true, 'renewals'),
      survey() {
        const gone = fenced.length > 0
        const other = { renewal: row.renewal(), isOver: row.isOver(), joined: true }
        return ask({ ...SURVEY, others: new Map(gone ? [] : [['other', other]]) }, 'reads')
      },
      fence: async (dead) => void fenced.push(dead),
    })
    await membership.begin()
    await membership.join()
    return { clock, fenced, reach: (what: typeof reaches) => void (reaches = what) }
  }

  it('takes nothing from a process that was unreachable as long as we were: a failover of the database ends none of them', async () => {
    let isOver = false
    const row = { isOver: () => isOver, renewal: () => 'last' }
    const { clock, fenced, reach } = await besideOther(row)
    reach('nothing')
    await clock.advance(22_000)
    isOver = true
    reach('all')
    await clock.advance(11_000)
    expect(fenced).toEqual([])
    await clock.advance(3000)
    expect(fenced).toEqual(['other'])
  })

  it('takes nothing while it cannot renew its own leases, though it can read: a pooler is overloaded', async () => {
    let isOver = false
    const row = { isOver: () => isOver, renewal: () => 'last' }
    const { clock, fenced, reach } = await besideOther(row)
    // The other one has renewed just before, and this one is about to.
    await clock.advance(4500)
    reach('reads')
    await clock.advance(10_500)
    isOver = true
    await clock.advance(15_000)
    expect(fenced).toEqual([])
    reach('all')
    await clock.advance(11_000)
    expect(fenced).toEqual([])
    await clock.advance(3000)
    expect(fenced).toEqual(['other'])
  })

  it('takes nothing after the machine slept, with the database and all processes on it', async () => {
    let isOver = false
    const row = { isOver: () => isOver, renewal: () => 'last' }
    const { clock, fenced } = await besideOther(row)
    await clock.advance(4500)
    isOver = true
    await clock.leap(60_000)
    await clock.advance(5000)
    expect(fenced).toEqual([])
  })

  it('takes nothing while its own renewal hangs, though by the clock of the database all leases have ended', async () => {
    const fenced: string[] = []
    const clock = new VirtualClock()
    let renewal = 0
    let hangs = false
    const membership = memberOf(clock, {
      renew: () =>
        new Promise((resolve, reject) => {
          if (hangs) clock.after(3000, () => reject(new Error('no answer')))
          else resolve(true)
        }),
      survey: async () => ({
        ...SURVEY,
        others: new Map([['other', { renewal: String(renewal), isOver: true, joined: true }]]),
      }),
      fence: async (dead) => void fenced.push(dead),
    })
    await membership.begin()
    await membership.join()
    // The last renewal of the other one precedes ours by nearly as much as it may.
    await clock.advance(4500)
    renewal++
    await clock.advance(6000)
    hangs = true
    await clock.advance(30_000)
    expect(fenced).toEqual([])
  })

  it('notes who is silent from its start on, also while it waits for the service before it joins', async () => {
    const fenced: string[] = []
    const taken: unknown[] = []
    const clock = new VirtualClock()
    const other = { renewal: 'last', isOver: true, joined: true }
    const membership = memberOf(clock, {
      survey: async () => ({ ...SURVEY, others: new Map(fenced.length > 0 ? [] : [['other', other]]) }),
      fence: async (dead) => void fenced.push(dead),
      take: async (wanted) => (taken.push(wanted), []),
    })
    await membership.begin()
    await clock.advance(13_000)
    expect([fenced, taken]).toEqual([['other'], []])
    membership.stop()
    expect(clock.waiting).toBe(0)
  })

  it('takes nothing for some seconds after its start: the database may just have become reachable', async () => {
    const row = { isOver: () => true, renewal: () => 'last' }
    const { clock, fenced } = await besideOther(row)
    await clock.advance(11_500)
    expect(fenced).toEqual([])
    await clock.advance(1500)
    expect(fenced).toEqual(['other'])
  })

  it('takes nothing from live processes when the clock of the database is set forward by an hour', async () => {
    const clock = new VirtualClock()
    let set = 0
    let renewedAt = clock.now()
    const isOver = (): boolean => renewedAt + 15_000 < clock.now() + set
    const row = { isOver, renewal: () => String(renewedAt) }
    const { fenced } = await besideOther(row, clock)
    for (let times = 0; times < 12; times++) {
      await clock.advance(5000)
      renewedAt = clock.now() + set
      if (times === 6) set = 3_600_000
    }
    expect(fenced).toEqual([])
  })

  it('takes over from a process that stopped, though the clock of the database was set back by an hour', async () => {
    let renewal = 0
    const row = { isOver: () => false, renewal: () => String(renewal) }
    const { clock, fenced } = await besideOther(row)
    for (let times = 0; times < 8; times++) {
      renewal++
      await clock.advance(5000)
    }
    await clock.advance(9500)
    expect(fenced).toEqual([])
    await clock.advance(3000)
    expect(fenced).toEqual(['other'])
  })

  it('never gives an epoch again, also when processes come and leave', async () => {
    const url = await createDatabase()
    const admin = await adminOf(url)
    const seen = new Set<number>()
    for (let times = 0; times < 3; times++) {
      const { store } = await replica(url)
      const { rows } = await admin.query<{ epoch: string }>('SELECT epoch FROM sidecar.leases')
      for (const { epoch } of rows) {
        expect(seen.has(Number(epoch))).toBe(false)
        seen.add(Number(epoch))
      }
      await store.close()
    }
    expect(seen.size).toBe(3 * (SHARDS + 1))
  })
})

describe('a process looks at its work', () => {
  const OTHERS = WAKE_TOPICS.filter((topic) => topic !== 'lanes')

  /** `noted`: of other processes the number of the last write, as in the database. `looks`: topics, one line for each look. */
  async function watched() {
    const [clock, looks, noted] = [new VirtualClock(), [] as string[], new Map<string, number>()]
    const membership = memberOf(clock, { survey: async () => ({ ...SURVEY, noted: new Map(noted) }) })
    membership.subscribe({ woken: ({ topics }) => looks.push([...topics].join(' ')) })
    await membership.begin()
    await membership.join()
    return { membership, clock, looks, noted }
  }

  it('but for its lanes, whenever another process has written: no wake was lost', async () => {
    const { membership, clock, looks, noted } = await watched()
    for (let last = 1; last <= 3; last++) {
      noted.set('other', last)
      await clock.advance(1010)
      membership.heard('other', { after: last - 1, last })
      await clock.advance(990)
    }
    expect(looks).toEqual(Array.from({ length: 3 }, () => OTHERS.join(' ')))
  })

  it('at its lanes about a second after a wake was lost, once', async () => {
    const { clock, looks, noted } = await watched()
    noted.set('other', 1)
    await clock.advance(1200)
    await clock.advance(10_000)
    expect(looks).toEqual([OTHERS.join(' '), 'lanes'])
  })

  it('at its lanes at once when a wake shows that one before it was lost', async () => {
    const { membership, looks } = await watched()
    membership.heard('other', { after: 0, last: 3 })
    expect(looks).toEqual([])
    membership.heard('other', { after: 4, last: 6 })
    expect(looks).toEqual(['lanes'])
    membership.heard('other', { after: 6, last: 7 })
    expect(looks).toEqual(['lanes'])
  })

  it('at everything when another process has ended: its last wake may be missing', async () => {
    const { membership, clock, looks, noted } = await watched()
    noted.set('other', 4)
    membership.heard('other', { after: 0, last: 4 })
    await clock.advance(2000)
    looks.length = 0
    noted.delete('other')
    await clock.advance(1000)
    expect(looks).toEqual([OTHERS.join(' '), 'lanes'])
  })
})

describe('two processes', () => {
  it('claim what is theirs, also when the other one commits it, and the owner is woken within 500 ms', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const session = sessionOf(second)
    await pause(1100)
    second.wakes.length = 0
    const call = lookupCall('call_1', session)
    const committed = await first.store.log.commit({
      facts: [frameFact(1, session)],
      hints: [hint(session, { subject: 'turn.final/1' })],
      newCalls: [{ ...call, state: 'running', attempts: 1, startedAt: 1 }],
    })
    const since = performance.now()
    expect(committed.lanes).toMatchObject([{ claimed: false }])
    expect(committed.newCalls).toEqual([{ callId: 'call_1', lease: null }])
    await until('the wakes', () =>
      ['lanes', 'hints', 'calls', 'facts'].every((topic) => heard(second, topic as WakeTopic)),
    )
    expect(performance.now() - since).toBeLessThan(500)
    expect(second.wakes.flatMap(({ hints }) => hints)).toEqual([
      { sessionId: session, subject: 'turn.final/1' },
    ])
    for (const { store } of [first]) {
      expect(await store.lanes.claim({ handler: 'app', lanes: 9 })).toEqual([])
      expect(await store.hints.claim(9)).toEqual([])
      expect(await store.calls.claim(ROOM)).toEqual([])
      expect(await store.lanes.nextDue('app')).toBeNull()
      expect(await store.hints.nextDue()).toBeNull()
      expect(await store.calls.nextDue(ROOM)).toBeNull()
    }
    expect(await second.store.lanes.claim({ handler: 'app', lanes: 9 })).toMatchObject([{ key: session }])
    expect(await second.store.hints.claim(9)).toMatchObject([{ sessionId: session }])
    // It was not begun: the owner runs it, as one that never ran.
    expect(await second.store.calls.claim(ROOM)).toMatchObject([
      { call: { state: 'received', uncertain: false } },
    ])
  })

  it('a lane that the leader removed while another process had it in memory gives nothing of the next one', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const session = sessionOf(second)
    await first.store.log.commit({ facts: [frameFact(1, session)] })
    const old = await laneOf(second.store)
    const [delivery] = await read(second.store, old)
    if (delivery === undefined) throw new Error('no delivery')
    await second.store.log.commit({ acks: () => [ack(old, delivery, 'delivered')] })
    await first.store.log.prune(1e9)
    await first.store.log.commit({ facts: [frameFact(2, session)] })
    expect(await read(second.store, old)).toEqual([])
    const next = await laneOf(second.store)
    expect(next.id).not.toBe(old.id)
    expect(seqs(await read(second.store, next))).toEqual(['2'])
  })

  it('an outcome concerns no other process, but a hint does', async () => {
    const url = await createDatabase()
    const [first, second] = await several(url, 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const admin = await adminOf(url)
    const counts = async (): Promise<{ last: number; noted: number }> =>
      (await admin.query('SELECT last::int, noted::int FROM sidecar.commits WHERE replica = $1', [second.id]))
        .rows[0]
    await first.store.log.commit({ facts: [frameFact(1, sessionOf(second))] })
    const lane = await laneOf(second.store)
    const [delivery] = await read(second.store, lane)
    if (delivery === undefined) throw new Error('no delivery')
    const before = await counts()
    await second.store.log.commit({ acks: () => [ack(lane, delivery, 'delivered')] })
    expect(await counts()).toEqual({ last: before.last + 1, noted: before.noted })
    await second.store.log.commit({ hints: [hint(sessionOf(first))] })
    expect(await counts()).toEqual({ last: before.last + 2, noted: before.last + 2 })
  })

  it('the sweep and the lane of facts without a session are the leader’s', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    await second.store.log.commit({ facts: [frameFact(1, null)], hints: [hint(null)] })
    expect(await second.store.hints.claim(9)).toEqual([])
    expect(await second.store.lanes.claim({ handler: 'app', lanes: 9 })).toEqual([])
    // The clocks of the two processes, which follow the database's, may differ by some milliseconds.
    await expect.poll(() => first.store.hints.claim(9)).toMatchObject([{ sessionId: null }])
    expect(await first.store.lanes.claim({ handler: 'app', lanes: 9 })).toMatchObject([{ key: '' }])
  })

  it('a hint that another process adds during a reading stays as it is after the reading', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const session = sessionOf(second)
    await second.store.log.commit({ hints: [hint(session)] })
    const [claimed] = await second.store.hints.claim(1)
    if (claimed === undefined) throw new Error('no hint')
    await first.store.log.commit({ hints: [hint(session, { scope: 'turns' })] })
    await second.store.log.commit({ hints: [hint(session, { delay: 60_000 })] })
    await second.store.log.commit({
      readings: [readingOf(session, { hint: { claim: claimed.claim, lookAfter: null, scope: 'session' } })],
    })
    await second.store.hints.release(claimed)
    expect(await second.store.hints.claim(1)).toMatchObject([{ sessionId: session, scope: 'turns' }])
  })

  it('write at once without waiting for each other’s rows, and positions never come late', async () => {
    const all = await several(await createDatabase(), 3)
    let seq = 0
    const seen: number[] = []
    const reader = all[0]?.store
    let goes = true
    const watch = (async () => {
      while (goes) {
        const { rows } = (await reader?.read.facts({ limit: 1000, order: 'desc' })) ?? { rows: [] }
        for (const { pos } of rows.toReversed()) if (pos > (seen.at(-1) ?? 0)) seen.push(pos)
        await pause(1)
      }
    })()
    await Promise.all(
      all.flatMap(({ store }) =>
        Array.from({ length: 4 }, async (_, strand) => {
          for (let times = 0; times < 15; times++) {
            const sessions = SESSIONS.slice(strand * 20, strand * 20 + 40)
            const facts = sessions.map((id) => frameFact(++seq, id))
            await Promise.all([
              store.log.commit({ hints: sessions.toReversed().map((id) => hint(id)) }),
              store.log.commit({ facts }),
              store.log.commit({ hints: sessions.map((id) => hint(id)) }),
            ])
          }
        }),
      ),
    )
    goes = false
    await watch
    const { rows } = (await reader?.read.facts({ limit: 1000, order: 'desc' })) ?? { rows: [] }
    for (const { pos } of rows.toReversed()) if (pos > (seen.at(-1) ?? 0)) seen.push(pos)
    const gaps = seen.filter((pos, index) => index > 0 && pos !== (seen[index - 1] ?? 0) + 1)
    expect(seen.length).toBeGreaterThan(100)
    expect(gaps).toEqual([])
  }, 60_000)

  it('stores frames while another stores outcomes, and one that stores frames excludes all others that do', async () => {
    const url = await createDatabase()
    const [{ id }, { store }] = [await replica(url, new VirtualClock()), await replica(url)]
    const [other, admin] = [await adminOf(url), await adminOf(url)]
    await other.query('BEGIN')
    await other.query("SELECT sidecar.admit($1, 1000, 'nothing', true)", [id])
    await store.log.commit({ facts: [frameFact(1), frameFact(2)], cursor: '2' })
    await other.query("SELECT sidecar.admit($1, 1001, 'lanes', true)", [id])
    const frames = store.log.commit({ facts: [frameFact(3)], cursor: '3' })
    await until('the frames wait', async () => {
      const { rows } = await admin.query(
        'SELECT FROM pg_locks WHERE NOT granted AND (classid::bigint << 32) + objid::bigint = 7305262420',
      )
      return rows.length > 0
    })
    await other.query('COMMIT')
    await frames
    await other.query('BEGIN')
    await other.query('SELECT pg_advisory_xact_lock_shared(7305262418)')
    const rest = store.log.commit({ facts: [frameFact(4)], newCalls: [] })
    await until('the write of anything else waits', () => isWaiting(admin))
    await other.query('COMMIT')
    await rest
    const { rows } = await store.read.facts({ limit: 9, order: 'asc' })
    expect(rows.map(({ seq }) => seq)).toEqual(['1', '2', '3', '4'])
  })

  it('adds frames to lanes while their owner stores outcomes and postpones some: none is lost, and none waits for the other', async () => {
    const url = await createDatabase()
    const [first, second] = await several(url, 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const sessions = SESSIONS.filter((id) => second.store.shards.owns(id)).slice(0, 12)
    const rounds = 60
    let seq = 0
    let written = false
    const hints = sessions.map((id) => hint(id))
    const writing = (async () => {
      for (let round = 0; round < rounds; round++) {
        const facts = sessions.toReversed().map((id) => frameFact(++seq, id))
        // Every third one shares its transaction with hints.
        await Promise.all([
          first.store.log.commit({ facts, cursor: String(seq) }),
          ...(round % 3 === 0 ? [first.store.log.commit({ hints: hints.toReversed() })] : []),
        ])
      }
      written = true
    })()
    const delivered = new Map<string, number[]>()
    const deliver = async (lane: Lane): Promise<Ack[]> => {
      const { deliveries } = await second.store.lanes.read(lane, 0, 3, 1e6)
      const mine = delivered.get(lane.key) ?? []
      mine.push(...deliveries.map(({ fact }) => fact.pos))
      delivered.set(lane.key, mine)
      return deliveries.map((one) => ack(lane, one, 'delivered'))
    }
    let turn = 0
    await until(
      'all deliveries',
      async () => {
        const lanes = await second.store.lanes.claim({ handler: 'app', lanes: 100 })
        const acks = await Promise.all(lanes.map(deliver))
        // In one write, or in one write for each lane.
        const writes = turn++ % 3 === 0 ? acks : [acks.flat()]
        await Promise.all([
          ...writes.map((some) => acknowledge(second.store, () => some)),
          second.store.log.commit({ hints }),
        ])
        const { retry, release } = second.store.lanes
        const backwards = lanes.toSorted((a, b) => (a.key < b.key ? 1 : -1))
        await Promise.all(backwards.map((lane) => (turn % 2 === 0 ? retry(lane, 0) : release(lane))))
        return written && lanes.length === 0
      },
      30_000,
    )
    await writing
    for (const positions of delivered.values()) {
      expect(positions).toHaveLength(rounds)
      expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    }
    expect(delivered.size).toBe(sessions.length)
    expect(await first.store.read.counts()).toMatchObject({ deliveries: { app: { pending: 0, dead: 0 } } })
    expect(await deadlocksOf(await adminOf(url), [first, second])).toBe(0)
  }, 60_000)

  it('a checkpoint that others wait for is announced to them at once', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    await pause(1100)
    second.wakes.length = 0
    const since = performance.now()
    await first.store.settings.setCheckpoint('held', '[]', 'waits')
    await until('the wake', () => second.wakes.some(({ topics }) => topics.has('waits') && topics.size === 1))
    expect(performance.now() - since).toBeLessThan(500)
  })

  it('an operator’s pause and retry on one reach the other', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    second.wakes.length = 0
    await first.store.settings.pauseHandler('app', 'by hand')
    await first.store.operator.retry({ handler: 'app' })
    await until('the wakes', () => heard(second, 'handlers') && heard(second, 'lanes'))
  })
})

describe('wakes', () => {
  const topicsAfter = async (one: Replica, act: () => Promise<unknown>): Promise<number> => {
    one.wakes.length = 0
    const since = performance.now()
    await act()
    await until('a wake', () => heard(one, 'lanes'))
    return performance.now() - since
  }

  it('come again after their connection broke', async () => {
    const url = await createDatabase()
    const [first, second] = await several(url, 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const admin = await adminOf(url)
    const { rowCount } = await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
    )
    expect(rowCount).toBe(2)
    await until('new connections', async () => {
      const { rows } = await admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
      )
      return rows.length === 2
    })
    await pause(1100)
    const session = sessionOf(second)
    await topicsAfter(second, () => first.store.log.commit({ facts: [frameFact(1, session)] }))
    expect(second.wakes.some(({ topics }) => topics.has('lanes') && topics.size < 6)).toBe(true)
  })

  it('that are lost cost a second: a poll finds what they would have reported', async () => {
    const url = await createDatabase()
    const wire = await Wire.to(url)
    wire.onRequest = (bytes) => (bytes.includes('LISTEN') ? 'cut' : 'pass')
    const first = await replica(url)
    const second = await replica(wire.url)
    await spread([first, second])
    const session = sessionOf(second)
    for (let seq = 1; seq <= 3; seq++) {
      const took = await topicsAfter(second, () =>
        first.store.log.commit({ facts: [frameFact(seq, session)] }),
      )
      expect(took).toBeLessThan(4000)
    }
  })

  it('are checked: a connection that is half open is opened again', async () => {
    const url = await createDatabase()
    const wire = await Wire.to(url)
    const lease = new VirtualClock()
    let listens = 0
    wire.onRequest = (bytes) => {
      if (bytes.includes('LISTEN')) listens++
      return 'pass'
    }
    await replica(wire.url, lease)
    await until('a connection', () => listens === 1)
    wire.onAnswer = (bytes) => (bytes.includes('"check":true') ? 'drop' : 'pass')
    await until('another one', async () => {
      await lease.advance(500)
      return listens > 1
    })
  })
})

describe('transient events', () => {
  const event = (text: string, after: string | null = null): TransientEvent => ({
    id: 'evt_t_0_0',
    type: 'agent.text',
    sessionId: 'ses_1',
    body: JSON.stringify({ text }),
    at: 1,
    after,
  })

  it('of the leader reach the other processes, in order, with every character', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    const sent = ['a', 'a', 'nul \u0000', 'emoji 🙂', 'half \ud83d', 'x'.repeat(5000), 'x'.repeat(5000)].map(
      (text) => event(text),
    )
    for (const one of sent) first.store.shards.shareTransient(one)
    await until('all of them', () => second.transients.length === sent.length)
    expect(second.transients).toEqual(sent)
    expect(first.transients).toEqual([])
  })

  it('that a notification cannot hold, or more than can wait, are left out, and the later ones arrive', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    first.store.shards.shareTransient(event('too large '.repeat(1000)))
    for (let count = 0; count < 100; count++) first.store.shards.shareTransient(event('x'.repeat(4000)))
    await until('some of them', () => second.transients.length > 0)
    const last = event('the last one')
    first.store.shards.shareTransient(last)
    await until('the last one', () => second.transients.some(({ body }) => body === last.body))
    expect(second.transients.length).toBeLessThan(40)
  })

  it('wait until the frames before them are stored', async () => {
    const [first, second] = await several(await createDatabase(), 2)
    if (first === undefined || second === undefined) throw new Error('two were started')
    await first.store.log.commit({ facts: [frameFact(1)], cursor: '1' })
    for (const after of ['1', '2']) first.store.shards.shareTransient(event(`after ${after}`, after))
    await until('the first one', () => second.transients.length > 0)
    const { rows } = await second.store.read.facts({ limit: 9, order: 'asc' })
    expect([second.transients.length, rows.length]).toEqual([1, 1])
    await first.store.log.commit({ facts: [frameFact(2)], cursor: '2' })
    await until('the second one', () => second.transients.length > 1)
  })
})

it('a claimed hint shows whether another process stored one, too', async () => {
  const url = await createDatabase()
  const [one, other] = await several(url, 2)
  if (one === undefined || other === undefined) throw new Error('there are not two processes')
  const sessionId = SESSIONS.find((id) => one.owned.has(shardOf(id))) ?? ''
  const hint: Hint = { sessionId, channel: 'webhook', at: 1, scope: 'session', delay: 0 }
  const seen: boolean[] = []
  for (const writers of [[one], [other], [one, other], [other, one], [one]]) {
    for (const { store } of writers) await store.log.commit({ hints: [hint] })
    const claimed = await until('a hint that is due', async () => (await one.store.hints.claim(1))[0])
    seen.push(claimed.elsewhere)
    const { claim } = claimed
    await one.store.log.commit({
      readings: [readingOf(sessionId, { hint: { claim, lookAfter: null, scope: 'session' } })],
    })
    await one.store.hints.release(claimed)
  }
  expect(seen).toEqual([false, true, true, true, false])
})

it('attempts under way of a handler that a newer process has as ordered end in the lanes of their sessions', async () => {
  const url = await createDatabase()
  const { store } = await openProcess(url)
  await store.shards.join()
  await store.settings.registerHandlers([everything('app', { ordered: false })])
  const { lanes } = await store.log.commit({ facts: [frameFact(1), frameFact(2)], cursor: '2' })
  const { store: newer } = await openProcess(url)
  await newer.settings.registerHandlers([everything('app')])
  await store.log.commit({
    acks: () =>
      lanes.flatMap(({ lane, deliveries }) => deliveries.map((delivery) => ack(lane, delivery, 'delivered'))),
  })
  expect((await newer.read.counts()).deliveries['app']).toMatchObject({ pending: 0 })
  expect((await inspectDatabase({ url })).problems).toEqual([])
})

it('a column that a newer process adds changes nothing for an older one', async () => {
  const url = await createDatabase()
  const [one] = await several(url, 1)
  if (one === undefined) throw new Error('there is no process')
  const { store } = one
  await store.log.commit({ readings: [readingOf('ses_1', {})] })
  const ask = async (): Promise<void> => {
    await store.resources.knownTurns('ses_1', ['turn_1'])
    await store.resources.summary('ses_1')
    await store.settings.subscriptions()
  }
  // On each connection, as far as they are used in turn.
  for (let nth = 0; nth < 8; nth++) await Promise.all([ask(), ask(), ask(), ask()])
  const admin = await adminOf(url)
  for (const table of ['sessions', 'turns', 'subscriptions'])
    await admin.query(`ALTER TABLE sidecar.${table} ADD COLUMN later text`)
  const { stale } = await store.log.commit({ readings: [readingOf('ses_2', {})] })
  expect(stale).toEqual([])
  await ask()
})

it('a read fetches about as many bodies as it returns', async () => {
  const url = await createDatabase()
  const wire = await Wire.to(url)
  const { store } = await openProcess(wire.url)
  await store.shards.join()
  await store.settings.registerHandlers([everything('app')])
  const MIB = 1024 * 1024
  const body = JSON.stringify({ x: 'y'.repeat(MIB) })
  for (let seq = 1; seq <= 16; seq++) {
    const committed = await store.log.commit({
      facts: [frameFact(seq, 'ses_1', { body })],
      cursor: String(seq),
    })
    for (const { claimed, lane } of committed.lanes) if (claimed) await store.lanes.release(lane)
  }
  const [lane] = await store.lanes.claim({ handler: 'app', lanes: 1 })
  if (lane === undefined) throw new Error('there is no lane')
  let bytes = 0
  wire.onAnswer = ({ length }) => {
    bytes += length
    return 'pass'
  }
  expect((await store.lanes.read(lane, 0, 64, MIB)).deliveries).toHaveLength(1)
  expect(bytes).toBeLessThan(5 * MIB)
  bytes = 0
  const seen: (string | null)[] = []
  for (let after = 0, more = true; more;) {
    const page = await store.read.frames({ after })
    seen.push(...page.frames.map(({ seq }) => seq))
    ;({ next: after, more } = page)
  }
  expect(seen).toEqual(Array.from({ length: 16 }, (_, index) => String(index + 1)))
  expect(bytes).toBeLessThan(17 * MIB)
})

it.runIf(FULL)('a write that waits too long for a lock is refused, and the lock can be found', async () => {
  const url = await createDatabase()
  const [one] = await several(url, 1)
  if (one === undefined) throw new Error('there is no process')
  const admin = await adminOf(url)
  await admin.query('BEGIN')
  await admin.query('LOCK TABLE sidecar.hints IN SHARE MODE')
  const hint: Hint = { sessionId: 'ses_1', channel: 'webhook', at: 1, scope: 'session', delay: 0 }
  await expect(one.store.log.commit({ hints: [hint] })).rejects.toMatchObject({ kind: 'busy' })
  await admin.query('ROLLBACK')
  await one.store.log.commit({ hints: [hint] })
})

it.runIf(FULL)(
  'a process that is frozen within a transaction loses its locks while others still wait for them, and goes on afterwards',
  async () => {
    const url = await createDatabase()
    const admin = await adminOf(url)
    const database = await openDatabase({ url }, () => undefined)
    onTestFinished(() => database.close())
    const transaction = await database.begin()
    await transaction.rows('SELECT 1 FROM pg_advisory_xact_lock(77)')
    await admin.query("SET lock_timeout = '9s'; SELECT pg_advisory_lock(77)")
    await expect(transaction.rows('SELECT 1')).rejects.toThrow(StoreError)
    await transaction.rollback()
    const next = await database.begin()
    expect(await next.rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await next.commit()
  },
)

// The server waits for room in the socket, which no limit of a statement ends: all other replicas waited, too.
it.runIf(FULL)(
  'a process that is frozen while it gets a long answer keeps its locks for seconds only',
  async () => {
    const wire = await Wire.to(await createDatabase())
    const admin = await adminOf(wire.target.href)
    // No limit of ours ends the statement meanwhile.
    const database = await openDatabase({ url: wire.url, longest: 60_000 }, () => undefined)
    const transaction = await database.begin()
    onTestFinished(async () => {
      wire.cutAll()
      await transaction.rollback()
      await database.close()
    })
    await transaction.rows('SELECT 1 FROM pg_advisory_xact_lock(77)')
    wire.onAnswer = () => 'stall'
    const long = transaction.rows("SELECT repeat('x', 100000000)").catch(() => 'failed')
    await until(
      'the lock',
      async () => (await admin.query('SELECT pg_try_advisory_lock(77) AS free')).rows[0].free === true,
      25_000,
    )
    wire.cutAll()
    expect(await long).toBe('failed')
  },
)

// A character that the database cannot store takes more octets there than here: the rest of the log was left out.
it('frames that the server leaves out of a page come with the next, whatever their characters', async () => {
  const url = await createDatabase()
  const [one] = await several(url, 1)
  if (one === undefined) throw new Error('there is no process')
  const body = JSON.stringify({ x: '\u{E000}'.repeat(50_000) })
  const seqs = Array.from({ length: 8 }, (_, index) => String(index + 1))
  await one.store.log.commit({
    facts: seqs.map((seq) => frameFact(Number(seq), 'ses_1', { body })),
    cursor: '8',
  })
  const seen: (string | null)[] = []
  for (let after = 0, more = true; more;) {
    const page = await one.store.read.frames({ after })
    seen.push(...page.frames.map(({ seq }) => seq))
    ;({ next: after, more } = page)
  }
  expect(seen).toEqual(seqs)
})

it('a lane is read on behind a large fact that is damaged', async () => {
  const url = await createDatabase()
  const [one] = await several(url, 1)
  if (one === undefined) throw new Error('there is no process')
  const { store } = one
  const large = JSON.stringify({ x: 'y'.repeat(100_000) })
  const { lanes } = await store.log.commit({
    facts: [frameFact(1, 'ses_1', { body: large }), frameFact(2, 'ses_1')],
    cursor: '2',
  })
  const [extended] = lanes
  if (extended === undefined) throw new Error('there is no lane')
  await (await adminOf(url)).query('UPDATE sidecar.facts SET checksum = 1 WHERE pos = 1')
  const { deliveries: found } = await store.lanes.read(extended.lane, 0, 64, 1000)
  expect(found.map(({ fact }) => fact.seq)).toEqual(['2'])
})

/** The schema of an older version of the sidecar, which had only the first `count` migrations. */
async function createSchema(admin: Client, count: number): Promise<void> {
  await admin.query('CREATE SCHEMA sidecar; CREATE TABLE sidecar.schema_versions (version int PRIMARY KEY)')
  for (let version = 1; version <= count; version++) {
    await admin.query(readFileSync(`src/sidecar/store/postgres/migrations/000${version}.sql`, 'utf8'))
    await admin.query('INSERT INTO sidecar.schema_versions VALUES ($1)', [version])
  }
}

// pg_dump reads the tables for an hour. An upgrade that waited for it stopped every older replica.
it('a migration that waits for a backup does not hold up the older replicas', async () => {
  const url = await createDatabase()
  const [backup, older, admin] = [await adminOf(url), await adminOf(url), await adminOf(url)]
  await createSchema(admin, 1)
  await backup.query('BEGIN; SELECT FROM sidecar.replicas')
  const opening = openProcess(url)
  opening.catch(() => undefined)
  let longest = 0
  await until('a pause between two tries', async () => {
    const asked = performance.now()
    await older.query('SELECT fenced FROM sidecar.replicas')
    longest = Math.max(longest, performance.now() - asked)
    const { rows } = await admin.query("SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")
    return rows.length > 0
  })
  await backup.query('COMMIT')
  const { store } = await opening
  await store.shards.join()
  expect((await store.log.commit({ facts: [frameFact(1)] })).facts).toHaveLength(1)
  expect(longest).toBeLessThan(4000)
})

// An index of ten million lanes took longer than a statement may: no start could ever finish.
it('a migration may take longer than any other statement', async () => {
  const url = await createDatabase()
  const admin = await adminOf(url)
  await createSchema(admin, 8)
  await admin.query(`CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); END';
    CREATE EVENT TRIGGER slow ON ddl_command_start EXECUTE FUNCTION slow()`)
  const database = await openDatabase({ url, longest: 100 }, () => undefined)
  onTestFinished(() => database.close())
  await migrate(database)
  expect(await versionOf(database)).toBe(knownVersion())
})

// A role for many jobs had it off. After a crash of the server, a tool ran again whose result had been posted.
it('a commit is on disk where the role does not wait for that', async () => {
  const url = await createDatabase()
  const admin = await adminOf(url)
  await admin.query(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET synchronous_commit = off`)
  const { store } = await replica(url)
  await until('the shards', () => store.shards.owns('ses_1'))
  await admin.query(`CREATE TABLE noted (setting text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO public.noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE ON sidecar.commits FOR EACH ROW EXECUTE FUNCTION note()`)
  await store.log.commit({ facts: [frameFact(1)], cursor: '1' })
  await store.log.commit({ facts: [frameFact(2), frameFact(3)], cursor: '3' })
  await store.settings.setCheckpoint('name', 'value')
  const { rows } = await admin.query<{ setting: string }>('SELECT DISTINCT setting FROM noted')
  expect(rows).toEqual([{ setting: 'on' }])
})

it('a process that was fenced stays fenced through an upgrade, and older ones write on', async () => {
  const url = await createDatabase()
  const [admin, holder, taking] = [await adminOf(url), await adminOf(url), await adminOf(url)]
  await createSchema(admin, 7)
  await admin.query(`INSERT INTO sidecar.commits VALUES ('frozen', 4), ('dead', 4), ('older', 4);
    INSERT INTO sidecar.replicas (id, name, version, started_at, until, fenced) VALUES
      ('frozen', '', '', 0, clock_timestamp(), true), ('dead', '', '', 0, clock_timestamp(), false),
      ('older', '', '', 0, clock_timestamp() + interval '15 s', false)`)
  // A takeover of the older version is under way during the upgrade.
  await holder.query("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('session-sidecar dead', 7))")
  const takeover = taking.query("SELECT sidecar.take_over('dead')")
  await until('the takeover waits', () => isWaiting(admin))
  await openProcess(url)
  await holder.query('COMMIT')
  await takeover
  const enter = async (call: string): Promise<unknown> =>
    await admin.query(`SELECT ${call}`).catch(({ code }: { code: string }) => code)
  expect(await enter("sidecar.admit('frozen', 5, 'lanes')")).toBe('SC001')
  expect(await enter("sidecar.fence('frozen', 5, true)")).toBe('SC001')
  expect(await enter("sidecar.admit('dead', 5, 'lanes')")).toBe('SC001')
  expect(await enter("sidecar.admit('older', 5, 'lanes')")).toMatchObject({ rowCount: 1 })
  expect(await enter("sidecar.fence('older', 5, true)")).toBe('SC002')
  expect(await enter("(SELECT sidecar.admit('older', 6, 'lanes')) IS NOT NULL AS stored")).toMatchObject({
    rows: [{ stored: true }],
  })
})

describe('a claim that fails', () => {
  it('leaves nothing claimed when the database breaks between its statements', async () => {
    const wire = await Wire.to(await createDatabase())
    const { store } = await replica(wire.url)
    await until('the shards', () => store.shards.owns('ses_1'))
    await store.log.commit({ newCalls: [lookupCall()] })
    // It was stopped before its answer was posted.
    await (await adminOf(wire.url)).query("UPDATE sidecar.calls SET state = 'finished', due_at = 0")
    wire.onRequest = (bytes) => (bytes.includes('RECURSIVE') ? 'cut' : 'pass')
    await expect(store.calls.claim(ROOM)).rejects.toMatchObject({ kind: 'unreachable' })
    wire.onRequest = () => 'pass'
    expect(await store.calls.claim(ROOM)).toMatchObject([{ call: { callId: 'call_1' } }])
  })

  it('leaves nothing claimed when the lease ends meanwhile, and is renewed later', async () => {
    const url = await createDatabase()
    const [other, admin] = [await adminOf(url), await adminOf(url)]
    const lease = new VirtualClock()
    const { store, renewals } = await replica(url, lease)
    await until('the shards', () => store.shards.owns('ses_1'))
    const { lanes } = await store.log.commit({ facts: [frameFact(1)] })
    for (const { lane } of lanes) await store.lanes.release(lane)
    await other.query('BEGIN')
    await other.query('LOCK TABLE sidecar.lanes, sidecar.replicas IN ACCESS EXCLUSIVE MODE')
    const claimed = store.lanes.claim({ handler: 'app', lanes: 9 })
    claimed.catch(() => undefined)
    await until('a claim that waits', () => isWaiting(admin))
    await lease.advance(13_000)
    await until('a renewal that failed', () => renewals.at(-1) === 'failed', 5000)
    await other.query('ROLLBACK')
    await expect(claimed).rejects.toThrow(/could not be renewed/)
    const before = renewals.length
    // Further advances would end the lease that is being renewed.
    await lease.advance(1000)
    await until('a renewal', () => renewals.slice(before).includes('renewed'))
    expect(await store.lanes.claim({ handler: 'app', lanes: 9 })).toHaveLength(1)
  })
})
