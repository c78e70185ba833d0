import { expect, it, onTestFinished } from 'vitest'
import { fanOut } from '../../src/core/observer.ts'
import { createSummaries } from '../../src/sidecar/deliver/summaries.ts'
import { createDispatcher, createWorker } from '../../src/sidecar/deliver/dispatcher.ts'
import { createAckBatcher } from '../../src/sidecar/deliver/ack-batcher.ts'
import { MemoryWindow } from '../../src/sidecar/deliver/lane.ts'
import type { Target } from '../../src/sidecar/deliver/targets/target.ts'
import type { Verdict } from '../../src/sidecar/deliver/targets/verdict.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { turnFact } from '../support/fact.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'
import { DELIVERED, FAILED, SPEC } from './world.ts'

const TIMEOUT = 15_000
const FACTS = 200

function targetOf(reply: () => Promise<Verdict>): Target {
  return { batches: true, send: (_batch, ended) => void reply().then(ended), abort: () => undefined }
}

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
  await store.settings.registerHandlers(specs.map(({ name }) => ({ name, ordered: true, events: ['*'] })))
  const acks = createAckBatcher(store, clock, log)
  const ports = {
    store,
    acks,
    summaries: createSummaries(store, clock),
    window: new MemoryWindow(),
    observer: fanOut([]),
    clock,
    random: longestWaits,
    log,
  }
  const workers = specs.map((spec, index) =>
    createWorker({ spec, target: targetOf(replies[index] ?? quick) }, ports),
  )
  const dispatcher = createDispatcher(workers, ports)
  dispatcher.start([])
  const facts = Array.from({ length: FACTS }, (_, index) =>
    turnFact('turn.completed', `t${index}`, `ses_${index % 20}`),
  )
  dispatcher.lanesExtended((await store.log.commit({ facts })).lanes)
  await clock.advance(60_000)
  const stopped = dispatcher.stop(0)
  await clock.advance(0)
  await stopped
  return taken
}

// [fault callback-1]
it('a handler keeps nine tenths of its rate beside one that hangs until its timeout and one that fails at once', async () => {
  const alone = await paceBeside([])
  expect(alone).toBeLessThan(FACTS * 20)
  const hangs = (): Promise<Verdict> => new Promise(() => undefined)
  const fails = async (): Promise<Verdict> => FAILED
  const beside = await paceBeside([hangs, fails, hangs])
  expect(beside).toBeLessThanOrEqual(alone / 0.9)
})
