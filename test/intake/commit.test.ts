import { describe, expect, it, onTestFinished } from 'vitest'
import { Bus } from '../../src/core/bus.ts'
import type { Call } from '../../src/core/call.ts'
import type { Hint } from '../../src/core/hint.ts'
import { createIntake } from '../../src/sidecar/intake/commit.ts'
import { createHintFilter } from '../../src/sidecar/intake/ownership.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { runningCall } from '../support/call.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'

/** The wait of src/sidecar/intake/commit.ts, milliseconds. */
const AFTER_CALL = 5

const announced: Hint = {
  sessionId: 'ses_1',
  channel: 'stream',
  at: 1,
  scope: 'session',
  delay: 0,
  subject: 'action.required/call_1',
}
const frames = { facts: [frameFact(1)], hints: [announced], cursor: '1' }

function open(hasTools: boolean) {
  const clock = new VirtualClock()
  const store = openSqliteStore({ path: ':memory:', clock, log: keepingLog() })
  onTestFinished(() => store.close())
  const hints: Hint[] = []
  const bus = new Bus()
  bus.subscribe({ hinted: (given) => hints.push(...given) })
  const intake = createIntake({ store, bus, filter: createHintFilter(store, null), clock, hasTools })
  const written: string[] = []
  /** What is written once nothing more happens without time passing. */
  const writtenNow = async (): Promise<string[]> => {
    await clock.advance(0)
    return [...written]
  }
  const note = (name: string, work: Promise<unknown>): void => void work.then(() => written.push(name))
  return { clock, store, intake, hints, note, writtenNow }
}

describe('a frame that announces a call', () => {
  it('is announced at once, and committed after the result of a fast tool', async () => {
    const { clock, intake, hints, note, writtenNow } = open(true)
    note('frame', intake.commit(frames))
    await clock.advance(AFTER_CALL - 1)
    expect(hints).toEqual([announced])
    note('other', intake.commit({ cursor: '1' }))
    expect(await writtenNow()).toEqual(['other'])
    await clock.advance(1)
    expect(await writtenNow()).toEqual(['other', 'frame'])
  })

  it('does not hold up the frames behind it', async () => {
    const { intake, note, writtenNow } = open(true)
    const more = new AbortController()
    note('frame', intake.commit(frames, more.signal))
    expect(await writtenNow()).toEqual([])
    more.abort()
    expect(await writtenNow()).toEqual(['frame'])
  })

  it('has its session read later if the call is accepted meanwhile, and at once otherwise', async () => {
    const second = { ...announced, subject: 'action.required/call_2' }
    const dueAfter = async (
      accepted: readonly Call[],
      hints: readonly Hint[] = [announced],
    ): Promise<number | null> => {
      const { clock, store, intake, note } = open(true)
      note('frame', intake.commit({ ...frames, hints }))
      await intake.addCalls(accepted)
      await clock.advance(AFTER_CALL)
      return await store.hints.nextDue()
    }
    expect(await dueAfter([])).toBe(0)
    expect(await dueAfter([runningCall('call_1')])).toBe(100)
    expect(await dueAfter([runningCall('call_1')], [announced, second])).toBe(0)
  })

  it('is committed at once where no tool runs', async () => {
    const { intake, note, writtenNow } = open(false)
    note('frame', intake.commit(frames))
    expect(await writtenNow()).toEqual(['frame'])
  })
})
