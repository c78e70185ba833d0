import { expect, it, onTestFinished } from 'vitest'
import { newCall } from '../../src/core/call.ts'
import type { Store } from '../../src/core/store.ts'
import { readAction, readSession, readTurn } from '../../src/core/wire.ts'
import { Checkpoints } from '../../src/sidecar/store/sqlite/log.ts'
import { BegunAttempts, DeliveryRows, Lanes } from '../../src/sidecar/store/sqlite/lanes.ts'
import { createMissed } from '../../src/sidecar/store/sqlite/missed.ts'
import { openDatabase } from '../../src/sidecar/store/sqlite/open.ts'
import { Ownership } from '../../src/sidecar/store/sqlite/committer.ts'
import { createPruning } from '../../src/sidecar/store/sqlite/prune.ts'
import { VirtualClock } from '../support/clock.ts'
import { createRedelivery } from '../../src/sidecar/store/sqlite/redelivery.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { openStore } from './database.ts'

/** The driver makes a function for the rows of a statement each time that SQLite has planned it anew. */
function countPlans(): () => number {
  const real = globalThis.Function
  let plans = 0
  globalThis.Function = new Proxy(real, {
    apply(made, self, parts) {
      plans++
      return Reflect.apply(made, self, parts)
    },
  })
  onTestFinished(() => {
    globalThis.Function = real
  })
  return () => plans
}

const NOW = 1_763_701_200_000

async function fill(store: Store): Promise<void> {
  const call = newCall({
    callId: 'call_1',
    sessionId: 'ses_1',
    turnId: 'trn_1',
    name: 'lookup',
    action: {},
    createdAt: 5,
    expiresAt: null,
    receivedAt: 7,
  })
  const session = readSession({ id: 'ses_2', status: 'working', updated_at: 1 }, () => undefined)
  const turnOf = (id: string) => readTurn({ id, status: 'completed', created_at: 1 }, 'ses_2')
  const action = readAction({ call_id: 'call_1', type: 'function_call', created_at: 1 })
  const known = { read: true, final: true, endedFrameAt: null, finalFor: null, finalFact: true }
  const { lanes } = await store.log.commit({
    facts: [frameFact(1), turnFact('turn.completed', 'trn_1')],
    newCalls: [call],
    hints: [{ sessionId: 'ses_1', channel: 'poll', at: NOW, scope: 'session', delay: 0 }],
    readings: [
      {
        sessionId: 'ses_2',
        revision: null,
        session,
        baseline: 0,
        atRest: false,
        turns: [
          { ...known, turn: turnOf('trn_1'), settled: false },
          { ...known, turn: turnOf('trn_2'), settled: true },
        ],
        opened: [action],
        resolved: [],
        newCalls: [],
        facts: [],
        at: NOW,
        hint: { claim: null, lookAfter: null, scope: 'session' },
      },
    ],
  })
  for (const { lane } of lanes) await store.lanes.release(lane)
}

const ROOM = { others: 10, of: () => 10 }

/** All that the sidecar asks again and again. @returns how many answers had something in them. */
async function ask(store: Store): Promise<number> {
  const hints = await store.hints.claim(10)
  for (const hint of hints) await store.hints.release(hint)
  const lanes = await store.lanes.claim({ handler: 'app', lanes: 10 })
  const deliveries = await Promise.all(lanes.map((lane) => store.lanes.read(lane, 0, 10, 1e6)))
  for (const lane of lanes) await store.lanes.release(lane)
  const calls = await store.calls.claim(ROOM)
  for (const { call, lease } of calls) await store.calls.release(call.callId, lease)
  const known = await store.resources.known('ses_2', ['trn_1'])
  const subject = 'turn.final/trn_1'
  await store.log.commit({
    hints: [{ sessionId: 'ses_1', channel: 'webhook', at: NOW, scope: 'session', delay: 0, subject }],
  })
  const lists = [
    hints,
    lanes,
    deliveries.flat(),
    calls,
    known?.turns ?? [],
    known?.actions ?? [],
    await store.resources.alive('', 10),
    await store.resources.active('', 10),
  ]
  const dues = [
    await store.hints.nextDue(),
    await store.lanes.nextDue('app'),
    await store.calls.nextDue(ROOM),
  ]
  return lists.filter((list) => list.length > 0).length + dues.filter((due) => due !== null).length
}

it('a repeated query is planned once: with a bare parameter as its limit it was planned each time', async () => {
  const plans = countPlans()
  const { store } = await openStore()
  await fill(store)
  expect(await ask(store)).toBe(11)
  const before = plans()
  expect(before).toBeGreaterThan(0)
  expect(await ask(store)).toBe(11)
  expect(plans() - before).toBe(0)
})

it('housekeeping reads only rows that are due, never a whole table', () => {
  const db = openDatabase(':memory:').db
  onTestFinished(() => void db.close())
  const asked: string[] = []
  const listening = new Proxy(db, {
    get(target, key) {
      if (key !== 'prepare') return Reflect.get(target, key) as unknown
      return (sql: string) => {
        asked.push(sql)
        return target.prepare(sql)
      }
    },
  })
  const checkpoints = new Checkpoints(db)
  const lanes = new Lanes({
    db,
    ownership: new Ownership(db),
    begun: new BegunAttempts(db, new VirtualClock(), async () => undefined),
    rows: new DeliveryRows(db),
    onDamage: () => undefined,
  })
  createPruning(listening, lanes, checkpoints)
  createMissed(listening, checkpoints)
  createRedelivery(listening, lanes, async (run) => run())
  expect(asked.length).toBeGreaterThan(15)
  const plans = asked.flatMap((sql) =>
    db
      .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...Array.from({ length: sql.split('?').length - 1 }, () => 1))
      .map(({ detail }) => detail),
  )
  // Sightings are of the last minutes; the commit of their fact removes them.
  expect(plans.filter((detail) => /^SCAN|TEMP B-TREE/.test(detail))).toEqual(['SCAN sightings'])
})
