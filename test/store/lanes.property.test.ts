import { join } from 'node:path'
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { expect } from 'vitest'
import type { Lane } from '../../src/core/delivery.ts'
import type { Store } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { folder, openStore } from './database.ts'
import { isPostgres, it } from './engines.ts'
import { acknowledge } from './lane.ts'
import { repeats } from '../support/full.ts'

const SESSIONS = ['ses_a', 'ses_b', 'ses_c']

/** What must be true of lanes: per session, what is pending and in which order, and who has claimed it. */
class Model {
  seq = 0
  /** Undelivered, by session, in the order of the log. */
  pending = new Map<string, string[]>(SESSIONS.map((session) => [session, []]))
  held = new Map<string, Lane>()
  ended = new Map<string, string>()
}

interface World {
  path: string
  store: Store
}

type Command = fc.AsyncCommand<Model, World>

class Commit implements Command {
  readonly sessions: readonly string[]
  constructor(sessions: readonly string[]) {
    this.sessions = sessions
  }
  check = () => true
  async run(model: Model, { store }: World): Promise<void> {
    const facts = this.sessions.map((session) => {
      const seq = String(++model.seq)
      model.pending.get(session)?.push(seq)
      return frameFact(seq, session)
    })
    // The last one is reported again: it must not be pending twice.
    const { lanes } = await store.log.commit({
      facts: [...facts, ...facts.slice(-1)],
      cursor: String(model.seq),
    })
    for (const { lane, claimed, deliveries } of lanes) {
      assert.deepEqual(
        deliveries.map(({ fact }) => fact.seq),
        facts.filter(({ sessionId }) => sessionId === lane.key).map(({ seq }) => seq),
      )
      if (!claimed) continue
      assert.deepEqual(model.held.has(lane.key), false)
      model.held.set(lane.key, lane)
    }
  }
  toString = () => `commit(${this.sessions.join(' ')})`
}

class Claim implements Command {
  check = () => true
  async run(model: Model, { store }: World): Promise<void> {
    const lanes = await store.lanes.claim({ handler: 'app', lanes: 10 })
    const free = SESSIONS.filter(
      (session) => (model.pending.get(session)?.length ?? 0) > 0 && !model.held.has(session),
    )
    assert.deepEqual(lanes.map(({ key }) => key).toSorted(), free)
    for (const lane of lanes) model.held.set(lane.key, lane)
  }
  toString = () => 'claim'
}

/** Reads the head of a held lane and ends some of what it found, as a worker does. */
class Work implements Command {
  readonly session: string
  readonly count: number
  readonly result: 'delivered' | 'dead' | 'retry'
  constructor(session: string, count: number, result: 'delivered' | 'dead' | 'retry') {
    this.session = session
    this.count = count
    this.result = result
  }
  check = (model: Readonly<Model>) => model.held.has(this.session)
  async run(model: Model, { store }: World): Promise<void> {
    const lane = model.held.get(this.session)
    if (lane === undefined) throw new Error('not held')
    const { deliveries: found } = await store.lanes.read(lane, 0, 5, 1e6)
    const pending = model.pending.get(this.session) ?? []
    assert.deepEqual(
      found.map(({ fact }) => fact.seq),
      pending.slice(0, 5),
    )
    const taken = found.slice(0, this.count)
    await acknowledge(store, () =>
      taken.map(({ fact, attempts }) => ({
        lane,
        pos: fact.pos,
        result: this.result,
        attempts: attempts + 1,
        attempt: { at: 1, status: 200, ms: 1 },
        after: null,
      })),
    )
    if (this.result === 'retry') return
    for (const { fact } of taken) model.ended.set(String(fact.seq), this.result)
    pending.splice(0, taken.length)
  }
  toString = () => `work(${this.session} ${this.count} ${this.result})`
}

class Release implements Command {
  readonly session: string
  constructor(session: string) {
    this.session = session
  }
  check = (model: Readonly<Model>) => model.held.has(this.session)
  async run(model: Model, { store }: World): Promise<void> {
    const lane = model.held.get(this.session)
    if (lane === undefined) throw new Error('not held')
    await store.lanes.release(lane)
    model.held.delete(this.session)
  }
  toString = () => `release(${this.session})`
}

class Prune implements Command {
  check = () => true
  async run(_: Model, { store }: World): Promise<void> {
    await store.log.prune(-1)
  }
  toString = () => 'prune'
}

class Crash implements Command {
  check = () => true
  async run(model: Model, world: World): Promise<void> {
    await world.store.close()
    world.store = (await openStore({ path: world.path })).store
    model.held.clear()
    assert.deepEqual(
      await world.store.settings.checkpoint('stream'),
      model.seq === 0 ? null : String(model.seq),
    )
  }
  toString = () => 'crash'
}

const session = fc.constantFrom(...SESSIONS)

it('lanes never lose or reorder a fact, whatever is committed, claimed, acknowledged, released, pruned and crashed', async () => {
  const commands = fc.commands(
    [
      fc.array(session, { minLength: 1, maxLength: 6 }).map((sessions) => new Commit(sessions)),
      fc.constant(new Claim()),
      fc
        .tuple(
          session,
          fc.integer({ min: 1, max: 5 }),
          fc.constantFrom('delivered', 'delivered', 'dead', 'retry'),
        )
        .map(([name, count, result]) => new Work(name, count, result)),
      session.map((name) => new Release(name)),
      fc.constant(new Prune()),
      fc.constant(new Crash()),
    ],
    { maxCommands: 40 },
  )
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      const path = join(folder(), 'lanes.db')
      const world: World = { path, store: (await openStore({ path })).store }
      const model = new Model()
      try {
        await fc.asyncModelRun(() => ({ model, real: world }), list)
        const pending = [...model.pending.values()].reduce((sum, seqs) => sum + seqs.length, 0)
        const dead = [...model.ended.values()].filter((result) => result === 'dead').length
        expect((await world.store.read.counts()).deliveries['app']).toMatchObject({ pending, dead })
      } finally {
        await world.store.close()
      }
    }),
    { numRuns: repeats(isPostgres() ? 20 : 60) },
  )
})
