import { expect, it, onTestFinished } from 'vitest'
import { FIRST_START } from '../../src/core/checkpoint.ts'
import type { Hint } from '../../src/core/hint.ts'
import type { ListQuery, Service } from '../../src/core/ports.ts'
import type { Page, Session } from '../../src/core/resource.ts'
import { parseSession } from '../../src/core/wire.ts'
import type { Intake } from '../../src/sidecar/intake/commit.ts'
import { asItIs } from '../../src/sidecar/intake/diff.ts'
import { createSweep } from '../../src/sidecar/intake/sweep.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { everySession } from '../support/ownership.ts'
import { keepingLog } from '../support/ports.ts'

const PAGE = 2

function session(id: string, updatedAt = 1): Session {
  const raw = { object: 'session', id, status: 'idle', created_at: 1, updated_at: updatedAt }
  const parsed = parseSession(raw)
  if (parsed === null) throw new Error('this is no session')
  return parsed
}

/** A sweep over a list that changes before each page, as the test says. */
function sweepWorld(
  ids: string[],
  before: (nth: number, ids: string[]) => void,
  streamConnected: () => boolean = () => true,
) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  let asked = 0
  /** Of the service's clock, as far as it was heard. */
  const heard = { offset: 0, open: 1000, updatedAt: 1 }
  const service: Pick<Service, 'listSessions' | 'clockOffset' | 'clockOpen'> = {
    async listSessions({ after }: ListQuery): Promise<Page<Session>> {
      before(++asked, ids)
      const from = after === undefined ? 0 : ids.indexOf(after) + 1
      // A cursor that cannot be placed: an empty page.
      const data = after !== undefined && from === 0 ? [] : ids.slice(from, from + PAGE)
      return {
        // What cannot be read is left out of the page, and leads on all the same.
        data: data.filter((id) => !id.startsWith('bad')).map((id) => session(id, heard.updatedAt)),
        hasMore: data.length > 0 && from + PAGE < ids.length,
        lastId: data.at(-1) ?? null,
      }
    },
    clockOffset: () => heard.offset,
    clockOpen: () => heard.open,
  }
  const marked = new Set<string | null>()
  const intake: Pick<Intake, 'hint' | 'commit'> = {
    commit: (batch) => store.log.commit(batch),
    hint: async (hints: readonly Hint[]) => hints.forEach(({ sessionId }) => marked.add(sessionId)),
  }
  /** The sweep of a process that starts now. */
  const start = () =>
    createSweep({
      service: service as Service,
      store,
      intake: intake as Intake,
      ownership: everySession(store),
      clock,
      log,
      stream: { connected: streamConnected },
      fromBeginning: true,
    })
  return { sweep: start(), start, store, marked, log, clock, heard, asked: () => asked }
}

it('long idle sessions are found by the clock of the service, also when its list is its first answer with a time', async () => {
  const world = sweepWorld(['a'], () => {
    world.heard.offset = -7_200_000
  })
  world.heard.updatedAt = world.clock.now() - 7_200_000 - 1000
  const looked: string[] = []
  await world.sweep.firstLook(async ({ id }) => void looked.push(id))
  expect(looked).toEqual(['a'])
})

it('what changed since the first start makes facts, also when a later process completes the first look', async () => {
  const world = sweepWorld(['a', 'b', 'c'], (nth) => {
    if (nth === 2) throw new Error('the service fails')
  })
  const started = world.clock.now()
  await expect(world.sweep.firstLook(async () => undefined)).rejects.toThrow('the service fails')
  await world.clock.advance(2 * 3_600_000)
  world.heard.updatedAt = started + 1000
  const looked: [string, number][] = []
  await world.start().firstLook(async ({ id }, since) => void looked.push([id, since]))
  expect(looked).toEqual([
    ['a', started],
    ['b', started],
    ['c', started],
  ])
})

it('a stored first start that is later than the start of this process is not used', async () => {
  const world = sweepWorld(['a'], () => undefined)
  const started = world.clock.now()
  await world.store.settings.setCheckpoint(FIRST_START, String(started + 3_600_000))
  world.heard.updatedAt = started + 1000
  const looked: [string, number][] = []
  await world.sweep.firstLook(async ({ id }, since) => void looked.push([id, since]))
  expect(looked).toEqual([['a', started]])
})

it('the first start is not stored while the clock of the service is hardly known', async () => {
  const world = sweepWorld(['a'], () => undefined)
  world.heard.open = 5000
  await world.sweep.firstLook(async () => undefined)
  expect(await world.store.settings.checkpoint(FIRST_START)).toBeNull()
})

// [fault state-7]
it('an empty page whose cursor was deleted does not end the list: it is read from the beginning', async () => {
  const world = sweepWorld(['a', 'b', 'c', 'd', 'e'], (nth, ids) => {
    if (nth === 2) ids.splice(ids.indexOf('b'), 1)
  })
  await world.sweep.run(true, { poll: 1 })
  expect([...world.marked].toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
    'a',
    'b',
    'c',
    'd',
    'e',
  ])
})

// [fault state-7]
it('a list whose cursors vanish repeatedly is abandoned with a warning, and no session counts as deleted', async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `s${index}`)
  const world = sweepWorld(ids, (nth, list) => {
    if (nth % 2 === 0) list.splice(1, 1)
  })
  await world.sweep.run(true, { poll: 1 })
  expect(world.asked()).toBeLessThan(10)
  expect(world.log.lines).toMatchObject([
    { level: 'warn', message: expect.stringContaining('changed during the sweep') },
  ])
})

it('a page without a readable entry does not end the list, and does not restart it', async () => {
  const world = sweepWorld(['a', 'b', 'bad1', 'bad2', 'c', 'bad3', 'bad4'], () => undefined)
  await world.sweep.run(true, { poll: 1 })
  expect([...world.marked]).toEqual(['a', 'b', 'c'])
  expect(world.asked()).toBe(4)
  expect(world.log.lines).toEqual([])
})

it.each([
  [true, []],
  [false, ['b']],
])(
  'sessions under way are read again unless the stream reports them (connected: %s)',
  async (connected, expected) => {
    const { sweep, store, marked, clock } = sweepWorld(
      ['a', 'b'],
      () => undefined,
      () => connected,
    )
    for (const id of ['a', 'b']) {
      const known = asItIs(session(id), { revision: null, baseline: 0, atRest: id === 'a', at: clock.now() })
      await store.log.commit({
        readings: [{ ...known, hint: { claim: null, lookAfter: null, scope: 'session' } }],
      })
    }
    await sweep.run(true, { poll: 1 })
    expect([...marked]).toEqual(expected)
  },
)
