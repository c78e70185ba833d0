import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newCall, type ClaimedCall } from '../../src/core/call.ts'
import type { CallEvent } from '../../src/core/call-machine.ts'
import type { Lane } from '../../src/core/delivery.ts'
import type { Fact } from '../../src/core/fact.ts'
import type { Hint } from '../../src/core/hint.ts'
import type { Batch, HintedSession, KnownTurn, Reading, Store } from '../../src/core/store.ts'
import { readAction, readSession, readTurn } from '../../src/core/wire.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { repeats } from '../support/full.ts'
import { VirtualClock } from '../support/clock.ts'
import { seededRandom } from '../support/ports.ts'
import { everything, folder, openStore } from './database.ts'
import { on, type Engine } from './engines.ts'

const NOW = 1_763_701_200_000
const STEPS = 150
const SESSIONS = ['ses_a', 'ses_B', 'ses_\0', 'ses_\uE0000041', 'ses_ä']
const TURNS = ['trn_1', 'trn_2', 'trn_3', 'trn_4', 'trn_5']
const CALLS = ['call_1', 'call_2', 'call_3', 'call_4', 'call_5', 'call_6']
const HANDLERS = ['app', 'turns']
const ROOM = { others: 99, of: () => 99 }

/** One engine, and what it has given out. */
class Side {
  readonly engine: Engine
  readonly path: string
  readonly clock = new VirtualClock(NOW)
  store!: Store
  ordered = true
  lanes = new Map<string, Lane>()
  hints = new Map<string, HintedSession>()
  calls = new Map<string, ClaimedCall>()

  constructor(engine: Engine) {
    this.engine = engine
    this.path = join(folder(), 'store.db')
  }

  async open(): Promise<void> {
    const options = { path: this.path, clock: this.clock }
    const { store } = await on(this.engine, () => openStore(options, this.handlers()))
    this.store = store
    for (const claims of [this.lanes, this.hints, this.calls]) claims.clear()
  }

  handlers() {
    return [everything('app', { ordered: this.ordered }), everything('turns', { events: ['turn.*'] })]
  }

  async commit(batch: Batch) {
    const committed = await this.store.log.commit(batch)
    for (const { lane, claimed } of committed.lanes)
      if (claimed) this.lanes.set(`${lane.handler} ${lane.key}`, lane)
    return committed
  }

  async releaseCalls(): Promise<void> {
    for (const [id, { lease }] of this.calls) await this.store.calls.release(id, lease)
    this.calls.clear()
  }
}

type Step = [name: string, run: (side: Side) => Promise<unknown>]

/** What differs between engines: numbers of rows, leases, generations, and which process stored a hint. */
const OWN = new Set(['pos', 'lease', 'generation', 'bytes', 'next', 'number', 'elsewhere'])

/** A result as it is compared: without the engine's own numbers, whose order is that of the facts. */
function plain(value: unknown): unknown {
  if (value instanceof Map) return plain(Object.fromEntries(value))
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, held]) => !OWN.has(key) && !(key === 'id' && isRow(held)))
      .map(([key, held]) => [key, plain(held)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

const isRow = (id: unknown): boolean => typeof id === 'number' || String(id).startsWith('dlv_')

/** The order of what is due at the same time is the engine's. */
function unordered(values: readonly unknown[]): unknown[] {
  return values.map(plain).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** Draws steps; what they do depends on nothing but what is drawn. */
class Steps {
  readonly #random
  /** Frames may have been held: they are stored later, so the log is no longer in the order of seq. */
  #held = false
  /** The session of each frame: that of seq 1 is the first. */
  readonly #sessions: string[] = []

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** The greatest seq of all frames. */
  get #seq(): number {
    return this.#sessions.length
  }

  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit)
  }

  #one<T>(of: readonly T[]): T {
    return of[this.#below(of.length)] as T
  }

  #some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#below(most + 1) }, make)
  }

  #fact(): Fact {
    const at = NOW + this.#below(100_000)
    const session = this.#one(SESSIONS)
    if (this.#below(4) === 0)
      return turnFact(this.#one(['turn.completed', 'turn.started']), this.#one(TURNS), session, {
        at,
        seen: this.#below(2) === 0 ? {} : { poll: at },
      })
    // Some are known already: a seq belongs to one session, as in the service.
    const before = this.#below(3) === 0 ? this.#below(this.#seq + 1) : this.#seq
    const owner = (this.#sessions[before] ??= session)
    const type = this.#one(['agent.message', 'agent.text', 'turn.ended'])
    const turnId = this.#one([null, ...TURNS])
    return frameFact(before + 1, owner, { at, type, turnId })
  }

  #hint(): Hint {
    const subject = this.#one([undefined, `turn.final/${this.#one(TURNS)}`])
    return {
      sessionId: this.#one([null, ...SESSIONS]),
      channel: this.#one(['stream', 'webhook', 'poll']),
      at: NOW + this.#below(1000),
      scope: this.#one(['session', 'artifacts', 'turns']),
      delay: this.#one([0, 0, 50, 1000]),
      ...(subject && { subject }),
    }
  }

  #turn(sessionId: string): KnownTurn {
    const id = this.#one(TURNS)
    const flags = this.#below(8)
    return {
      turn: readTurn(
        { id, status: this.#one(['working', 'completed']), created_at: TURNS.indexOf(id) + 1 },
        sessionId,
      ),
      read: true,
      final: flags > 2,
      settled: flags > 4,
      endedFrameAt: this.#one([null, NOW]),
      finalFor: flags > 2 ? this.#below(500) : null,
      finalFact: flags > 5,
    }
  }

  #call(sessionId: string, state: 'received' | 'running' = 'received') {
    const made = newCall({
      callId: this.#one(CALLS),
      sessionId,
      turnId: this.#one([null, ...TURNS]),
      name: this.#one(['lookup', 'refund']),
      action: { z: 1, a: '\0' },
      createdAt: this.#one([null, 5]),
      expiresAt: null,
      receivedAt: NOW + this.#below(1000),
    })
    return state === 'received' ? made : { ...made, state, attempts: 1, startedAt: NOW }
  }

  /** A reading of a session, whose revision it takes from the side. */
  #reading(): (side: Side) => Promise<Reading> {
    const sessionId = this.#one(SESSIONS)
    const old = this.#below(5) === 0
    const raw = {
      id: sessionId,
      status: this.#one(['idle', 'working', 'failed']),
      updated_at: this.#below(99),
      title: 'Ä title',
    }
    const gone = this.#below(8) === 0
    const turns = this.#some(3, () => this.#turn(sessionId))
    const actions = this.#some(2, () =>
      readAction({ type: 'function_call', call_id: this.#one(CALLS), name: 'lookup', created_at: 3 }),
    )
    const newCalls = this.#some(1, () => this.#call(sessionId))
    const facts = this.#some(2, () => this.#fact())
    const lookAfter = this.#one([null, 700])
    const scope = this.#one(['session', 'turns'] as const)
    const atRest = this.#below(2) === 0
    const at = NOW + this.#below(1e9)
    return async (side) => {
      const known = await side.store.resources.known(sessionId)
      const claim = side.hints.get(sessionId)?.claim ?? null
      return {
        sessionId,
        revision: old ? 77 : (known?.revision ?? null),
        session: gone ? null : readSession(raw, () => undefined),
        baseline: 0,
        atRest,
        turns,
        opened: gone ? [] : actions,
        resolved: known?.actions.map(({ callId }) => callId).slice(0, 1) ?? [],
        newCalls,
        facts,
        at,
        hint: { claim, lookAfter, scope },
      }
    }
  }

  #event(): CallEvent {
    const at = NOW + 5
    const result = { kind: 'output', text: 'mark \uE000' } as const
    return this.#one<CallEvent>([
      { type: 'run_begun', at },
      { type: 'run_begun_again', at },
      { type: 'run_withdrawn' },
      { type: 'run_failed', error: 'e', uncertain: true },
      { type: 'run_deferred' },
      { type: 'result_fixed', result, error: null, at },
      { type: 'app_answered', result, at },
      { type: 'app_awaited' },
      { type: 'post_unanswered', error: 'e' },
      { type: 'post_accepted', outcome: 'ok' },
      { type: 'answered', outcome: 'ok', error: null, at },
      { type: 'postponed' },
    ])
  }

  #commit(): Step {
    const facts = this.#some(6, () => this.#fact())
    const hints = this.#some(3, () => this.#hint())
    const cursor = this.#one([undefined, String(this.#below(this.#seq + 2))])
    const scoped = this.#below(4) === 0
    this.#held ||= scoped
    const owners = scoped
      ? this.#some(2, () => ({
          sessionId: this.#one(SESSIONS),
          owner: this.#one(['pending', 'ours', 'foreign', 'gone', 'unknown'] as const),
          at: NOW,
        }))
      : []
    const reading = this.#one([null, this.#reading()])
    const newCalls = this.#some(1, () => this.#call(this.#one(SESSIONS), this.#one(['received', 'running'])))
    const calls = this.#some(2, () => ({
      callId: this.#one(CALLS),
      event: this.#event(),
      ...this.#one([{}, { after: 400 }]),
    }))
    const checkpoint = this.#one([
      undefined,
      {
        name: this.#one(['items/x', 'items/ses_a']),
        to: this.#one(['1', 'zwei\0']),
        ...this.#one([{}, { from: null }, { from: '1' }, { from: 'zwei\0' }]),
      },
    ])
    return [
      'commit',
      async (side) => {
        const {
          lanes,
          newCalls: added,
          ...committed
        } = await side.commit({
          facts,
          hints,
          newCalls,
          calls,
          owners,
          scoped,
          readings: reading === null ? [] : [await reading(side)],
          ...(cursor !== undefined && { cursor }),
          ...(checkpoint && { checkpoint }),
        })
        return [committed, unordered(lanes), unordered(added)]
      },
    ]
  }

  /** Works on a lane that is held. */
  #work(): Step {
    const place = this.#below(100)
    const results = Array.from({ length: 4 }, () =>
      this.#one(['delivered', 'delivered', 'dead', 'retry'] as const),
    )
    const after = this.#one([null, 300])
    const release = this.#one(['release', 'retry', 'hold'])
    return [
      'work',
      async (side) => {
        const keys = [...side.lanes.keys()].toSorted()
        const key = keys[place % Math.max(1, keys.length)]
        const lane = key === undefined ? undefined : side.lanes.get(key)
        if (key === undefined || lane === undefined) return null
        const page = await side.store.lanes.read(lane, 0, 4, 1e6)
        const { deliveries: found } = page
        const committed = await side.commit({
          acks: () =>
            found.map(({ fact, attempts }, index) => ({
              lane,
              pos: fact.pos,
              result: results[index] ?? 'delivered',
              attempts: attempts + 1,
              attempt: { at: NOW, status: 200 + index, ms: 1, answer: 'an\0swer' },
              after,
            })),
        })
        if (release === 'hold') return [page, committed]
        side.lanes.delete(key)
        if (release === 'retry') await side.store.lanes.retry(lane, 900)
        await side.store.lanes.release(lane)
        return [found, committed]
      },
    ]
  }

  #queues(): Step {
    const handler = this.#one(HANDLERS)
    const which = this.#below(100)
    const after = this.#below(2000)
    return this.#one<Step>([
      [
        'claim lanes',
        async (side) => {
          const lanes = await side.store.lanes.claim({ handler, lanes: 999 })
          for (const lane of lanes) side.lanes.set(`${lane.handler} ${lane.key}`, lane)
          return [unordered(lanes), await side.store.lanes.nextDue(handler)]
        },
      ],
      [
        'claim hints',
        async (side) => {
          const hints = await side.store.hints.claim(99)
          for (const hint of hints) side.hints.set(hint.sessionId ?? '', hint)
          return [unordered(hints), await side.store.hints.nextDue()]
        },
      ],
      [
        'end a hint',
        async (side) => {
          const keys = [...side.hints.keys()].toSorted()
          const key = keys[which % Math.max(1, keys.length)]
          const hint = key === undefined ? undefined : side.hints.get(key)
          if (key === undefined || hint === undefined) return null
          side.hints.delete(key)
          if (key === '') await side.store.hints.finishSweep(hint)
          else if (which % 3 === 0) await side.store.hints.retry(hint, after)
          else if (which % 3 === 1) await side.store.hints.defer(hint, after)
          else await side.store.hints.release(hint)
          return await side.store.hints.nextDue()
        },
      ],
      [
        'claim calls',
        async (side) => {
          const calls = await side.store.calls.claim(ROOM)
          for (const claimed of calls) side.calls.set(claimed.call.callId, claimed)
          return [unordered(calls), await side.store.calls.nextDue(ROOM)]
        },
      ],
      [
        'release calls',
        async (side) => {
          await side.releaseCalls()
          return await side.store.calls.nextDue(ROOM)
        },
      ],
    ])
  }

  #rare(): Step {
    const ms = this.#one([1, 60, 500, 5000])
    const handler = this.#one(HANDLERS)
    const at = NOW + this.#below(100_000)
    const seq = String(this.#below(this.#seq + 1))
    return this.#one<Step>([
      ['advance', (side) => side.clock.advance(ms)],
      ['retry', (side) => side.store.operator.retry({ handler, since: at })],
      ['retry dry', (side) => side.store.operator.retry({ dryRun: true })],
      ['replay at', (side) => side.store.operator.replay(handler, { at })],
      ['replay seq', (side) => side.store.operator.replay(handler, { seq })],
      [
        'prune',
        async (side) => {
          // A tool host releases a call when it ends, and so before it is pruned.
          await side.releaseCalls()
          return await side.store.log.prune(side.clock.now() - at)
        },
      ],
      [
        'missed',
        (side) => side.store.log.missed({ stream: new Set(['turn.completed']) }, side.clock.now() - at),
      ],
      ['pause', (side) => side.store.settings.pauseHandler(handler, ms > 100 ? 'why\0' : null)],
      [
        'order',
        async (side) => {
          side.ordered = !side.ordered
          // Handlers are registered at a start: no lane is held then.
          for (const lane of side.lanes.values()) await side.store.lanes.release(lane)
          side.lanes.clear()
          return await side.store.settings.registerHandlers(side.handlers())
        },
      ],
      [
        'restart',
        async (side) => {
          await side.store.close()
          await side.clock.leap(1)
          await side.open()
        },
      ],
    ])
  }

  #reads(): Step {
    const sessionId = this.#one(SESSIONS)
    const one = this.#one([{ sessionId }, {}])
    const limit = 1 + this.#below(30)
    const order = this.#one(['asc', 'desc'] as const)
    const status = this.#one(['pending', 'delivered', 'dead'] as const)
    const word = this.#one(['idle', 'deleted'])
    const seq = String(this.#below(this.#seq + 1))
    const held = this.#held
    return this.#one<Step>([
      ['facts', ({ store: { read } }) => read.facts({ limit, order, ...one })],
      ['facts of a type', ({ store: { read } }) => read.facts({ limit, order, type: 'agent.text' })],
      ['deliveries', ({ store: { read } }) => read.deliveries({ limit, status, ...one })],
      ['sessions', ({ store: { read } }) => read.sessions({ limit, text: 'titl' })],
      ['sessions with a status', ({ store: { read } }) => read.sessions({ limit, status: word })],
      [
        'session',
        async ({ store: { read } }) => {
          const session = await read.session(sessionId)
          return session === null ? null : { ...session, actions: unordered(session.actions) }
        },
      ],
      ['calls', ({ store: { read } }) => read.calls({ limit })],
      ['open turns', ({ store: { read } }) => read.openTurns({ limit })],
      ['open actions', ({ store: { read } }) => read.openActions({ limit })],
      ['functions', ({ store: { read } }) => read.functionsBeside(['refund'], limit)],
      ['counts', ({ store: { read } }) => read.counts()],
      [
        'frames',
        async ({ store: { read } }) => {
          const { pos, stored } = await read.placeOf(seq)
          // What is nearest is open where frames are not in the order of seq.
          return stored || !held ? { stored, ...(await read.frames({ after: pos, ...one })) } : { stored }
        },
      ],
      [
        'known',
        async ({ store: { resources } }) => {
          const known = await resources.known(sessionId, TURNS.slice(0, 2))
          return known === null ? null : { ...known, turns: unordered(known.turns) }
        },
      ],
      [
        'turns',
        async ({ store: { resources } }) => unordered(await resources.knownTurns(sessionId, TURNS.slice(2))),
      ],
      ['glance', ({ store: { resources } }) => resources.glance(SESSIONS)],
      ['alive', async ({ store: { resources } }) => unordered(await resources.alive('', 9))],
      ['active', async ({ store: { resources } }) => unordered(await resources.active('', 9))],
      ['count', ({ store: { resources } }) => resources.count()],
      ['owners', ({ store: { resources } }) => resources.owners(SESSIONS)],
      ['held', ({ store: { resources } }) => resources.heldFrames()],
      ['call', ({ store: { calls } }) => Promise.all(CALLS.map((id) => calls.get(id)))],
      ['checkpoint', ({ store: { settings } }) => settings.checkpoint('items/x')],
    ])
  }

  draw(): Step {
    const chance = this.#random.next()
    if (chance < 0.35) return this.#commit()
    if (chance < 0.5) return this.#work()
    if (chance < 0.7) return this.#queues()
    return chance < 0.82 ? this.#rare() : this.#reads()
  }
}

/** The result of a step, or the kind of its refusal. */
async function outcomeOf(run: Step[1], side: Side): Promise<unknown> {
  return plain(await on(side.engine, () => run(side)))
}

it.each(Array.from({ length: repeats(48) }, (_, index) => index + 1))(
  'one sequence of operations has the same results on each engine: seed %i',
  async (seed) => {
    const [sqlite, postgres] = [new Side('SQLite'), new Side('PostgreSQL')]
    for (const side of [sqlite, postgres]) await side.open()
    const steps = new Steps(seed)
    for (let index = 0; index < STEPS; index++) {
      const [name, run] = steps.draw()
      const [expected, given] = [await outcomeOf(run, sqlite), await outcomeOf(run, postgres)]
      expect(given, `step ${index}: ${name}`).toEqual(expected)
    }
  },
)
