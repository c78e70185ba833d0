import { expect, it, onTestFinished } from 'vitest'
import { fanOut } from '../../src/core/observer.ts'
import { createBriefs } from '../../src/deliver/briefs.ts'
import { createDispatcher } from '../../src/deliver/dispatcher.ts'
import { createSettler } from '../../src/deliver/settler.ts'
import type { Verdict } from '../../src/deliver/verdict.ts'
import { createWorker } from '../../src/deliver/worker.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { turnFact } from '../support/fact.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'
import { DELIVERED, FAILED, SPEC } from './world.ts'

const TIMEOUT = 15_000
const FACTS = 200

/** Virtual milliseconds that handler `quick` takes for its facts, beside handlers that answer as `others` do. */
async function paceBeside(others: readonly (() => Promise<Verdict>)[]): Promise<number> {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  let left = FACTS
  const begun = clock.steady()
  let taken = Infinity
  const quick = async (): Promise<Verdict> => {
    await new Promise<void>((resolve) => void clock.after(20, resolve))
    if (--left === 0) taken = clock.steady() - begun
    return DELIVERED
  }
  const replies = [quick, ...others]
  const specs = replies.map((_, index) => ({ ...SPEC, name: `h${index}`, timeout: TIMEOUT }))
  await store.registerHandlers(specs.map(({ name }) => ({ name, ordered: true, wants: () => true })))
  const settler = createSettler(store, clock, log)
  const briefs = createBriefs(store, clock)
  const workers = specs.map((spec, index) =>
    createWorker({
      spec,
      target: { batches: true, send: async () => (await replies[index]?.()) ?? DELIVERED },
      paused: null,
      store,
      settler,
      briefs,
      observer: fanOut([]),
      clock,
      random: longestWaits,
      log,
    }),
  )
  const dispatcher = createDispatcher(workers, settler)
  dispatcher.start()
  const facts = Array.from({ length: FACTS }, (_, index) =>
    turnFact('turn.completed', `t${index}`, `ses_${index % 20}`),
  )
  dispatcher.news(await store.commit({ facts }))
  await clock.advance(60_000)
  const stopped = dispatcher.stop(0)
  await clock.advance(0)
  await stopped
  return taken
}

// [fault callback-1]
it('a handler keeps nine tenths of its pace beside one that hangs until its timeout and one that fails at once', async () => {
  const alone = await paceBeside([])
  expect(alone).toBeLessThan(FACTS * 20)
  const hangs = (): Promise<Verdict> => new Promise(() => undefined)
  const fails = async (): Promise<Verdict> => FAILED
  const beside = await paceBeside([hangs, fails, hangs])
  expect(beside).toBeLessThanOrEqual(alone / 0.9)
})
