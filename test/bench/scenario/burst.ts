import { Type } from 'typebox'
import type { Bench, Scenario } from '../scenario.ts'
import { PATIENCE, Stage } from '../stage.ts'

const NAME = 'burst'
const FRAMES = 40_000

/** Persisted frames of 25 sessions, live, as fast as the reader takes them. */
export const burst: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'callbacks/s',
      digits: 0,
      judge: (ours, baseline) => ours / baseline,
      judged: '# of baseline',
      floor: { at: 'least', value: 0.6 },
    },
  ],
  async open(bench) {
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES)
    return {
      async ours() {
        await stage.load(count, false)
        await using subject = await stage.startSubject('now')
        const figures = { [NAME]: await rate(stage, count) }
        await subject.stop()
        return figures
      },
      async baseline() {
        await stage.load(count, false)
        await using _baseline = await stage.startBaseline('now')
        return { [NAME]: await rate(stage, count) }
      },
    }
  },
}

async function rate(stage: Stage, count: number): Promise<number> {
  const { from, to } = await send(stage)
  return (count / (to - from)) * 1000
}

/** From the first frame to the last callback, milliseconds of clock.ts. */
async function send(stage: Stage): Promise<{ from: number; to: number }> {
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

/** One burst through a sidecar that was started with `nodeOptions`. */
export async function burstOnce(bench: Bench, nodeOptions: readonly string[]): Promise<Burst> {
  const stage = await Stage.open(bench)
  const callbacks = bench.scaled(FRAMES)
  await stage.load(callbacks, false)
  await using subject = await stage.startSubject('now', nodeOptions)
  const span = await send(stage)
  const commits = await subject.metric('store_commit_duration_seconds_count')
  const committing = await subject.metric('store_commit_duration_seconds_sum')
  await subject.stop()
  return { ...span, callbacks, commits, committing }
}
