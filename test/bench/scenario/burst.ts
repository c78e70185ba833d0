import { Type } from 'typebox'
import type { Figures, Measure } from '../measure.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { PATIENCE, Stage } from '../stage.ts'
import { processorTime } from '../usage.ts'

const RATE = 'burst'
const PROCESSOR = 'burst, processor time'
const BATCHES = 'burst, batches of 16'
export const FRAMES = 40_000
const BATCH = 16

export const rateOf = (name: string, floor: number, goal: number): Measure => ({
  name,
  unit: 'callbacks/s',
  digits: 0,
  judge: (ours, baseline) => ours / baseline,
  judged: '# of baseline',
  floor: { at: 'least', value: floor },
  goal: { value: goal },
})

/** Persisted frames of 25 sessions, live, as fast as the reader takes them. The baseline posts one fact at a time also beside batches. */
export const burst: Scenario = {
  measures: [
    rateOf(RATE, 0.75, 1),
    {
      name: PROCESSOR,
      unit: 'CPU s/10,000',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × baseline',
      floor: { at: 'most', value: 1.25 },
      goal: { value: 1 },
    },
    rateOf(BATCHES, 1.8, 2.5),
  ],
  async open(bench) {
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES)
    const through = async (batch: number): Promise<Cost> => {
      await stage.load(count)
      await using subject = await stage.startSubject('now', { batch })
      const cost = await costOf(stage, count, subject.pid)
      await subject.stop()
      return cost
    }
    return {
      async ours() {
        const single = await through(1)
        const batches = await through(BATCH)
        return { [RATE]: single.rate, [PROCESSOR]: single.processor, [BATCHES]: batches.rate }
      },
      async baseline(): Promise<Figures> {
        await stage.load(count)
        await using baseline = await stage.startBaseline('now')
        const { rate, processor } = await costOf(stage, count, baseline.pid)
        return { [RATE]: rate, [PROCESSOR]: processor, [BATCHES]: rate }
      },
    }
  },
}

interface Cost {
  /** Callbacks a second. */
  rate: number
  /** Seconds of processor time, all threads of the process, for 10,000 callbacks. */
  processor: number
}

export async function costOf(stage: Stage, count: number, pid: number): Promise<Cost> {
  const before = processorTime(pid)
  const { from, to } = await sendBurst(stage)
  const used = processorTime(pid) - before
  return { rate: (count / (to - from)) * 1000, processor: (used / count) * 10_000 }
}

/** From the first frame to the last callback, milliseconds of clock.ts. */
export async function sendBurst(stage: Stage): Promise<{ from: number; to: number }> {
  const [from, to] = await Promise.all([
    stage.source.ask('send', Type.Number(), undefined, PATIENCE),
    stage.delivered(),
  ])
  return { from, to }
}

/** What one burst looked like from inside. */
export interface Burst {
  /** Milliseconds of clock.ts. */
  from: number
  to: number
  callbacks: number
  commits: number
  /** Seconds spent in them. */
  committing: number
}

/** One burst through a sidecar that was started with `nodeOptions`. `store`: a database's URL; null: a file. */
export async function burstOnce(
  bench: Bench,
  nodeOptions: readonly string[],
  store: string | null,
): Promise<Burst> {
  const stage = await Stage.open(bench)
  const callbacks = bench.scaled(FRAMES)
  await stage.load(callbacks)
  await using subject = await stage.startSubject('now', { nodeOptions, ...(store === null ? {} : { store }) })
  const span = await sendBurst(stage)
  const commits = await subject.metric('store_commit_duration_seconds_count')
  const committing = await subject.metric('store_commit_duration_seconds_sum')
  await subject.stop()
  return { ...span, callbacks, commits, committing }
}
