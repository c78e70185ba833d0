import { Type } from 'typebox'
import { residentMemory, watchMemory } from '../usage.ts'
import type { Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { PATIENCE, Stage } from '../stage.ts'
import { median } from '../statistics.ts'

export const LATENCY = 'latency'
const MEMORY = 'memory at 200/s'
/** Frames a second, and in all: ten seconds. */
const PACE = 200
export const PACED = 2000

/** Frames one by one: the time from writing a frame to receiving its callback, and what it takes in memory. */
export const steady: Scenario = {
  measures: [
    {
      name: LATENCY,
      unit: 'ms p50',
      digits: 2,
      judge: (ours, baseline) => ours - baseline,
      judged: 'added # ms',
      floor: { at: 'most', value: 0.5, fdatasyncs: 2.5 },
      goal: { value: 0.3, fdatasyncs: 2 },
    },
    {
      name: MEMORY,
      unit: 'MB',
      digits: 0,
      judge: (ours) => ours,
      judged: '# MB',
      floor: { at: 'most', value: 130 },
      goal: { value: 115 },
    },
  ],
  async open(bench) {
    const stage = await Stage.open(bench)
    const count = bench.scaled(PACED)
    return {
      async ours() {
        await stage.load(count)
        await using subject = await stage.startSubject('now')
        const figures = await follow(stage, subject.pid)
        await subject.stop()
        return figures
      },
      async baseline() {
        await stage.load(count)
        await using baseline = await stage.startBaseline('now')
        return await follow(stage, baseline.pid)
      },
    }
  },
}

export async function follow(stage: Stage, pid: number): Promise<Figures> {
  const times = Type.Array(Type.Number())
  const sending = stage.source.ask('pace', times, { perSecond: PACE }, PATIENCE)
  const { result: written, most } = await watchMemory(pid, sending)
  await stage.delivered()
  const received = await stage.receiver.ask('times', times)
  const latencies = received.map((at, index) => at - (written[index] ?? Number.NaN))
  return { [LATENCY]: median(latencies), [MEMORY]: Math.max(most, residentMemory(pid, 'VmRSS')) }
}
