import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import type { Hint } from '../../src/core/hint.ts'
import { readSession, readTurn } from '../../src/core/wire.ts'
import { VirtualClock } from '../support/clock.ts'
import { folder, openStore } from './database.ts'
import { isPostgres, it } from './engines.ts'

const HOUR = 3_600_000
const NOON = 1_763_701_200_000

const hint = (delay: number): Hint => ({
  sessionId: 'ses_1',
  channel: 'poll',
  at: NOON,
  scope: 'session',
  delay,
})

/** A database's clock goes on while the test runs. */
function expectAbout(given: number | null | undefined, expected: number): void {
  const slack = isPostgres() ? 30_000 : 0
  expect(Math.abs((given ?? Infinity) - expected)).toBeLessThanOrEqual(slack)
}

// [fault process-8]
it('what was due before a restart is due after it, also when the wall clock was set back in between', async () => {
  const place = { path: join(folder(), 'sidecar.db'), dueBy: 'database' } as const
  const before = await openStore({ ...place, clock: new VirtualClock(NOON) })
  await before.store.log.commit({ hints: [hint(HOUR)] })
  await before.store.close()
  const after = await openStore({ ...place, clock: new VirtualClock(NOON - HOUR) })
  expectAbout(await after.store.hints.nextDue(), HOUR)
  await after.store.close()
  // Once is enough: the time of before is over.
  const later = await openStore({ ...place, clock: new VirtualClock(NOON - HOUR + 100) })
  expectAbout(await later.store.hints.nextDue(), isPostgres() ? HOUR : HOUR - 100)
})

it('artifacts are not read more often after the wall clock was set back', async () => {
  const place = { path: join(folder(), 'sidecar.db'), dueBy: 'database' } as const
  const before = await openStore({ ...place, clock: new VirtualClock(NOON) })
  const warn = () => undefined
  const turn = readTurn(
    {
      id: 'trn_1',
      session_id: 'ses_1',
      status: 'completed',
      created_at: 1,
      completed_at: 2,
      artifacts: 'pending',
    },
    'ses_1',
  )
  const awaited = {
    turn,
    read: true,
    final: true,
    settled: false,
    endedFrameAt: null,
    finalFor: HOUR,
    finalFact: true,
  }
  await before.store.log.commit({
    readings: [
      {
        sessionId: 'ses_1',
        revision: null,
        session: readSession({ id: 'ses_1', status: 'idle', updated_at: 1 }, warn),
        baseline: 0,
        atRest: false,
        turns: [awaited],
        opened: [],
        resolved: [],
        newCalls: [],
        facts: [],
        at: 1000,
        hint: { claim: null, lookAfter: null, scope: 'artifacts' },
      },
    ],
  })
  await before.store.close()
  const after = await openStore({ ...place, clock: new VirtualClock(NOON - HOUR) })
  const [known] = (await after.store.resources.known('ses_1'))?.turns ?? []
  expectAbout(known?.finalFor, HOUR)
})

it.file('a restart after an hour does not change due times', async () => {
  const path = join(folder(), 'sidecar.db')
  const before = await openStore({ path, clock: new VirtualClock(NOON) })
  await before.store.log.commit({ hints: [hint(2 * HOUR)] })
  await before.store.close()
  const after = await openStore({ path, clock: new VirtualClock(NOON + HOUR) })
  expect(await after.store.hints.nextDue()).toBe(HOUR)
})

it.file(
  'a store that cannot be adjusted to a clock that was set back is released, and can be opened later',
  async () => {
    const path = join(folder(), 'sidecar.db')
    const before = await openStore({ path, clock: new VirtualClock(NOON) })
    await before.store.log.commit({ hints: [hint(500)] })
    await before.store.close()
    const db = new Database(path)
    db.exec("CREATE TRIGGER full BEFORE UPDATE ON hints BEGIN SELECT RAISE(ABORT, 'no room'); END")
    db.close()
    await expect(openStore({ path, clock: new VirtualClock(NOON - HOUR) })).rejects.toThrow('no room')
    const again = new Database(path)
    again.exec('DROP TRIGGER full')
    again.close()
    const after = await openStore({ path, clock: new VirtualClock(NOON - HOUR) })
    expect(await after.store.hints.nextDue()).toBe(500)
  },
)
