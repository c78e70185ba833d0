import { expect, it } from 'vitest'
import { newCall } from '../../src/core/call.ts'
import { transition } from '../../src/core/call-machine.ts'
import type { Hint } from '../../src/core/hint.ts'
import { shardOf, type Wake } from '../../src/core/shards.ts'
import type { Clock } from '../../src/std/ports.ts'
import { LONG } from '../../src/sidecar/store/attempt.ts'
import { ack } from '../store/lane.ts'
import { frameFact } from '../support/fact.ts'
import { Agenda } from './agenda.ts'
import { Chance } from './chance.ts'
import { closeDisk, emptyDisk, newDatabase } from './database.ts'
import type { Fault } from './faults.ts'
import { Face, SharedStore } from './replicas.ts'
import { keepingLog } from '../support/ports.ts'

const APP = { name: 'app', ordered: true, events: ['*'] }

const sweep: Hint = { sessionId: null, channel: 'webhook', at: 0, scope: 'session', delay: 0 }

const onBroken = (message: string): void => {
  throw new Error(message)
}

/** Two processes and more on one store, without their engines. */
function house() {
  const agenda = new Agenda(1_763_701_200_000, new Chance(1, 'ties'))
  const db = newDatabase(4096, false)
  const shared = new SharedStore({
    db,
    agenda,
    chance: new Chance(1, 'shared'),
    onTaken: () => undefined,
    onBroken,
  })
  /** What goes wrong at the next passage of a place. */
  const faults = new Map<string, Fault>()
  let number = 0
  const start = async () => {
    const life = { alive: true, asleepUntil: 0, disturbed: 'no' as const }
    const clock: Clock = {
      now: () => Math.floor(agenda.now),
      steady: () => agenda.now,
      after(ms, run) {
        const entry = agenda.in(Math.max(1, ms), run, life)
        return { cancel: () => void (entry.cancelled = true) }
      },
      soon: (run) => void agenda.in(0, run, life),
    }
    const heard = { led: 0, gained: 0, lost: 0, wakes: [] as Wake[], live: 1, fenced: false }
    const face = new Face(shared, {
      number: ++number,
      life,
      clock,
      log: keepingLog(),
      sites: {
        pass(site, when) {
          const fault = faults.get(`${site} ${when}`) ?? null
          faults.delete(`${site} ${when}`)
          return fault
        },
      },
      onCommit: () => undefined,
      onLost: () => void (heard.fenced = true),
    })
    face.store.shards.subscribe({
      led: () => void heard.led++,
      gained: (shards) => void (heard.gained += shards.length),
      lost: (shards) => void (heard.lost += shards.length),
      woken: (wake) => void heard.wakes.push(wake),
      population: (live) => void (heard.live = live),
    })
    await settle(face.begin())
    await settle(face.store.settings.registerHandlers([APP]))
    await settle(face.store.shards.join())
    const crash = (): void => {
      life.alive = false
      face.drop()
    }
    return { face, store: face.store, heard, life, crash }
  }
  const pass = (ms: number) => agenda.runUntil(agenda.now + ms, () => false)
  async function settle<T>(promise: Promise<T>, limit = 60_000): Promise<T> {
    let done = false
    promise.then(
      () => (done = true),
      () => (done = true),
    )
    const until = agenda.now + limit
    while (!done && agenda.now < until) await agenda.runUntil(agenda.now + 1, () => done)
    if (!done) throw new Error('it did not settle')
    return await promise
  }
  return { agenda, db, shared, faults, start, pass, settle }
}

/** A session that `owner` has. */
function sessionOf(owner: { store: Face['store'] }): string {
  for (let n = 0; ; n++) if (owner.store.shards.owns(`ses_${n}`)) return `ses_${n}`
}

const shardsOf = async ({ store }: { store: Face['store'] }): Promise<number[]> =>
  (await store.shards.replicas()).map(({ shards }) => shards)

it('one process has everything, and a second one half of it, with one leader', async () => {
  const { start, pass } = house()
  const first = await start()
  expect(first.heard).toMatchObject({ led: 1, gained: 64 })
  const second = await start()
  await pass(5000)
  expect(await shardsOf(first)).toEqual([32, 32])
  expect(first.heard).toMatchObject({ lost: 32, live: 2 })
  expect(second.heard).toMatchObject({ led: 0, gained: 32, live: 2 })
  expect([first.store.shards.leads, second.store.shards.leads]).toEqual([true, false])
  for (let n = 0; n < 200; n++)
    expect(first.store.shards.owns(`ses_${n}`)).toBe(!second.store.shards.owns(`ses_${n}`))
})

it('a process that freezes is fenced, and its writes after it wakes are refused', async () => {
  const { start, pass, settle, agenda } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  const session = sessionOf(first)
  const commit = first.store.log.commit({ facts: [frameFact('1', session)] })
  first.life.asleepUntil = agenda.now + 30_000
  await pass(20_000)
  expect(await shardsOf(second)).toEqual([64])
  expect(second.heard).toMatchObject({ led: 1, live: 1 })
  expect(second.store.shards.owns(session)).toBe(true)
  await expect(settle(commit)).rejects.toThrow(/taken the store over/)
  expect(first.heard.fenced).toBe(true)
  expect(first.store.shards.owns(session)).toBe(false)
})

it('a process refuses to work before its lease ends, and continues if no process fenced it', async () => {
  const { start, pass, settle } = house()
  const first = await start()
  await pass(5000)
  first.face.cut(14_000)
  await pass(13_500)
  await expect(settle(first.store.hints.claim(1))).rejects.toThrow(/could not be renewed/)
  expect(first.store.shards.owns('ses_1')).toBe(false)
  await pass(4000)
  expect(first.store.shards.owns('ses_1')).toBe(true)
  expect(first.heard).toMatchObject({ fenced: false, led: 1 })
})

it('the time of a renewal whose answer is late counts from when it was asked for', async () => {
  const { start, pass, faults } = house()
  const first = await start()
  await pass(4000)
  faults.set('store.shards.renew after', 'slow')
  await pass(2000)
  first.face.cut(60_000)
  await pass(11_500)
  expect(first.store.shards.owns('ses_1')).toBe(false)
})

it('a shard is handed over when nothing of it is claimed', async () => {
  const { start, pass, settle } = house()
  const first = await start()
  const sessions = Array.from({ length: 300 }, (_, n) => `ses_${n}`)
  const committed = await settle(
    first.store.log.commit({ facts: sessions.map((id, n) => frameFact(String(n), id)) }),
  )
  expect(committed.lanes.every(({ claimed }) => claimed)).toBe(true)
  const second = await start()
  await pass(1500)
  expect(second.heard.gained).toBe(0)
  for (const { lane } of committed.lanes) if (shardOf(lane.key) < 20) await first.store.lanes.release(lane)
  await pass(5000)
  expect(second.heard.gained).toBe(20)
  const claimed = await settle(second.store.lanes.claim({ handler: 'app', lanes: 1000 }))
  expect(claimed.every(({ key }) => shardOf(key) < 20)).toBe(true)
  expect(claimed.length).toBeGreaterThan(20)
})

it('what was claimed under a lease that ended has no effect', async () => {
  const { start, pass, settle } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  const session = sessionOf(first)
  const { lanes } = await settle(first.store.log.commit({ facts: [frameFact('1', session)] }))
  const [extension] = lanes
  const [delivery] = extension?.deliveries ?? []
  if (extension === undefined || delivery === undefined) throw new Error('no lane')
  first.crash()
  await pass(20_000)
  const [lane] = await settle(second.store.lanes.claim({ handler: 'app', lanes: 10 }))
  if (lane === undefined) throw new Error('nothing was claimed')
  expect(lane.lease.epoch).toBeGreaterThan(extension.lane.lease.epoch)
  const late = ack(extension.lane, delivery, 'delivered')
  await settle(second.store.log.commit({ acks: () => [late] }))
  expect((await settle(second.store.lanes.read(lane, 0, 10, 1000))).deliveries).toHaveLength(1)
})

it('an epoch is given once', async () => {
  const { start, pass, settle } = house()
  const epochs = new Set<number>()
  let previous = await start()
  for (let round = 0; round < 4; round++) {
    const session = sessionOf(previous)
    const { lanes } = await settle(previous.store.log.commit({ facts: [frameFact(String(round), session)] }))
    const epoch = lanes[0]?.lane.lease.epoch ?? 0
    expect(epochs.has(epoch)).toBe(false)
    epochs.add(epoch)
    if (round % 2 === 0) previous.crash()
    else await previous.store.close()
    previous = await start()
    await pass(20_000)
  }
})

it('a commit wakes the owner, and the next poll makes up for a lost wake', async () => {
  const { start, pass, settle, faults } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  const session = sessionOf(second)
  second.heard.wakes.length = 0
  const { lanes } = await settle(first.store.log.commit({ facts: [frameFact('1', session)] }))
  expect(lanes.map(({ claimed }) => claimed)).toEqual([false])
  await pass(100)
  expect(second.heard.wakes.map(({ topics }) => [...topics])).toContainEqual(['facts', 'lanes'])
  faults.set('store.wake before', 'lost')
  await settle(
    first.store.log.commit({
      hints: [
        { sessionId: session, channel: 'webhook', at: 0, scope: 'session', delay: 0, subject: 'turn 1' },
      ],
    }),
  )
  second.heard.wakes.length = 0
  await pass(1500)
  expect(second.heard.wakes.length).toBeGreaterThan(0)
  expect(await settle(first.store.hints.claim(10))).toEqual([])
  expect(await settle(second.store.hints.claim(10))).toMatchObject([{ sessionId: session }])
})

it('a process that has left the store gets no wakes, and its writes are refused as closed', async () => {
  const { start, pass, settle, faults } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  await settle(first.store.shards.leave())
  faults.set('store.shards.survey after', 'slow')
  await pass(1500)
  await settle(second.store.log.commit({ hints: [sweep] }))
  first.heard.wakes.length = 0
  await first.store.close()
  await pass(5000)
  expect(first.heard).toMatchObject({ wakes: [], fenced: false })
  await expect(settle(first.store.log.commit({ hints: [sweep] }))).rejects.toThrow('the store is closed')
})

it('a process that closes the store while it takes leases gets none of them', async () => {
  const { start, pass, faults } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  expect(first.heard).toMatchObject({ gained: 64 })
  faults.set('store.shards.take after', 'slow')
  second.crash()
  let waited = 0
  while (faults.size > 0 && waited++ < 30_000) await pass(1)
  expect(faults.size).toBe(0)
  await first.store.close()
  await pass(5000)
  expect(first.heard).toMatchObject({ led: 1, gained: 64 })
})

it('leases that could not be taken on a disk that refuses writes are free', async () => {
  const { start, pass, settle, db } = house()
  const first = await start()
  const session = sessionOf(first)
  const { lanes } = await settle(first.store.log.commit({ facts: [frameFact('1', session)] }))
  const [extension] = lanes
  if (extension === undefined) throw new Error('no lane')
  first.store.lanes.begin(
    extension.lane,
    extension.deliveries.map(({ fact }) => fact.pos),
  )
  await pass(LONG + 500)
  const second = await start()
  await pass(100)
  first.crash()
  closeDisk(db)
  await pass(20_000)
  expect(second.store.shards.owns(session)).toBe(false)
  emptyDisk(db)
  await pass(2000)
  expect(second.store.shards.owns(session)).toBe(true)
})

it('attempts that a dead process left are interrupted, and those of others are not', async () => {
  const { start, pass, settle, db } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  const [theirs, ours] = [sessionOf(first), sessionOf(second)]
  for (const [one, session] of [[first, theirs] as const, [second, ours] as const]) {
    const { lanes } = await settle(one.store.log.commit({ facts: [frameFact(session.slice(4), session)] }))
    const [extension] = lanes
    if (extension === undefined) throw new Error('no lane')
    one.store.lanes.begin(
      extension.lane,
      extension.deliveries.map(({ fact }) => fact.pos),
    )
  }
  await pass(LONG + 500)
  const begun = db.prepare<[], number>('SELECT count(*) FROM begun').pluck()
  expect(begun.get()).toBe(2)
  first.crash()
  await pass(20_000)
  expect(begun.get()).toBe(1)
  const [lane] = await settle(second.store.lanes.claim({ handler: 'app', lanes: 10 }))
  if (lane === undefined) throw new Error('nothing was claimed')
  expect(lane.key).toBe(theirs)
  expect((await settle(second.store.lanes.read(lane, 0, 10, 1000))).deliveries).toMatchObject([{ cut: 1 }])
})

it('a call whose shard another process owns is stored as not begun', async () => {
  const { start, pass, settle } = house()
  const [first, second] = [await start(), await start()]
  await pass(5000)
  const session = sessionOf(second)
  const call = transition(
    newCall({
      callId: 'call_1',
      sessionId: session,
      turnId: null,
      name: 'lookup',
      action: {},
      createdAt: null,
      expiresAt: null,
      receivedAt: 0,
    }),
    { type: 'run_begun', at: 0 },
  )
  if (call === null) throw new Error('the call cannot run')
  const { newCalls } = await settle(first.store.log.commit({ newCalls: [call] }))
  expect(newCalls).toEqual([{ callId: 'call_1', lease: null }])
  const room = { others: 10, of: () => 10 }
  expect(await settle(first.store.calls.claim(room))).toEqual([])
  expect(await settle(second.store.calls.claim(room))).toMatchObject([
    { call: { state: 'received', attempts: 0 } },
  ])
})
