import { onTestFinished } from 'vitest'
import type { Fact } from '../../src/core/fact.ts'
import type { HandlerSpec, ModuleHandler } from '../../src/core/handler.ts'
import { fanOut, type CallbackReport } from '../../src/core/observer.ts'
import type { Random } from '../../src/std/ports.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { createSummaries } from '../../src/sidecar/deliver/summaries.ts'
import { createDispatcher, createWorker } from '../../src/sidecar/deliver/dispatcher.ts'
import { createModuleTarget } from '../../src/sidecar/deliver/targets/module.ts'
import { createAckBatcher } from '../../src/sidecar/deliver/ack-batcher.ts'
import { MemoryWindow } from '../../src/sidecar/deliver/lane.ts'
import type { Outgoing, Target } from '../../src/sidecar/deliver/targets/target.ts'
import type { Verdict } from '../../src/sidecar/deliver/targets/verdict.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits, seededRandom } from '../support/ports.ts'

export const SPEC: HandlerSpec = {
  name: 'app',
  target: { kind: 'module', handle: () => undefined },
  events: ['*'],
  format: 'standard',
  ordered: true,
  concurrency: 4,
  batch: { max: 1, wait: 0 },
  timeout: 15_000,
  retry: { attempts: 3, base: 1000, max: 3_600_000 },
}

export const DELIVERED: Verdict = { kind: 'delivered', status: 204 }
export const FAILED: Verdict = { kind: 'retry', status: 500, floor: 0 }
export const UNREACHABLE: Verdict = { kind: 'unreachable', error: 'refused', reset: false }
export const RESET: Verdict = { kind: 'unreachable', error: 'reset', reset: true }

type Reply = (outgoing: Outgoing, signal: AbortSignal) => Verdict | Promise<Verdict>

/** One handler's worker over a real store, with a target that answers as the test says. */
export async function deliveryWorld(
  options: {
    spec?: Partial<HandlerSpec>
    reply?: Reply
    random?: Random
    /** In place of the target that replies: a module. */
    handle?: ModuleHandler
    /** Of the store; absent: in memory. */
    path?: string
  } = {},
) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: options.path ?? ':memory:', clock, log })
  onTestFinished(() => store.close())
  const spec = { ...SPEC, ...options.spec }
  const sent: { seq: string | null; sessionId: string | null; attempt: number; at: number }[] = []
  const batches: number[] = []
  const reports: CallbackReport[] = []
  const states: string[] = []
  const dropped: string[] = []
  const world = {
    clock,
    log,
    store,
    sent,
    batches,
    reports,
    states,
    /** Handlers for which a transient event was dropped, once for each. */
    dropped,
    reply: options.reply ?? ((): Verdict => DELIVERED),
    inFlight: 0,
    mostInFlight: 0,
  }
  const target: Target = {
    batches: true,
    send(batch, ended) {
      batches.push(batch.length)
      for (const { fact, attempt } of batch) {
        sent.push({ seq: fact.seq, sessionId: fact.sessionId, attempt, at: clock.steady() })
      }
      const [first] = batch
      if (first === undefined) throw new Error('an empty batch')
      world.mostInFlight = Math.max(world.mostInFlight, ++world.inFlight)
      void answer(first).then(ended)
    },
    abort: () => stopping.abort(),
  }
  const stopping = new AbortController()
  const answer = async (first: Outgoing): Promise<Verdict> => {
    try {
      return await world.reply(first, stopping.signal)
    } finally {
      world.inFlight--
    }
  }
  const moduleParts = { clock, log, tracer: plainTracer(seededRandom()) }
  const records = await store.settings.registerHandlers([
    { name: spec.name, ordered: spec.ordered || spec.batch.max > 1, events: ['*'] },
  ])
  const acks = createAckBatcher(store, clock, log)
  const worker = createWorker(
    {
      spec,
      target: options.handle === undefined ? target : createModuleTarget(spec, options.handle, moduleParts),
    },
    {
      store,
      acks,
      summaries: createSummaries(store, clock),
      window: new MemoryWindow(),
      observer: fanOut([
        {
          callback: (report) => reports.push(report),
          handler: (_, state) => states.push(state),
          transientDropped: (handler) => dropped.push(handler),
        },
      ]),
      clock,
      random: options.random ?? longestWaits,
      log,
    },
  )
  const dispatcher = createDispatcher([worker], { acks, window: new MemoryWindow(), store, log })
  dispatcher.start(records)
  return Object.assign(world, {
    worker,
    dispatcher,
    stop: (grace: number) => dispatcher.stop(grace),
    /** Commits facts and wakes the worker, as the intake does. */
    async commit(facts: readonly Fact[]): Promise<void> {
      const { lanes } = await store.log.commit({ facts })
      for (const extension of lanes) worker.extend(extension)
      await clock.settle()
    },
    counts: async () => (await store.read.counts()).deliveries['app'],
  })
}
