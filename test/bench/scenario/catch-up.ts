import { Type } from 'typebox'
import { residentMemory } from '../memory.ts'
import type { Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { Stage } from '../stage.ts'

const TIME = 'catch-up'
const MEMORY = 'memory in catch-up'
/** As many as the service replays on one connection. */
const FRAMES = 50_000

/** A replay into an empty database: the time from its first frame to the last callback, and the most memory it took. */
export const catchUp: Scenario = {
  measures: [
    {
      name: TIME,
      unit: 's',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × baseline',
      floor: { at: 'most', value: 1.6 },
    },
    {
      name: MEMORY,
      unit: 'MB',
      digits: 0,
      judge: (ours) => ours,
      judged: '# MB',
      floor: { at: 'most', value: 200 },
    },
  ],
  async open(bench) {
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES)
    return {
      async ours() {
        await stage.load(count, true)
        await using subject = await stage.startSubject('beginning')
        const figures = await follow(stage, subject.pid)
        await subject.stop()
        return figures
      },
      async baseline() {
        await stage.load(count, true)
        await using baseline = await stage.startBaseline('beginning')
        return await follow(stage, baseline.pid)
      },
    }
  },
}

async function follow(stage: Stage, pid: number): Promise<Figures> {
  const lastAt = await stage.delivered()
  const startedAt = await stage.source.ask('startedAt', Type.Number())
  return { [TIME]: (lastAt - startedAt) / 1000, [MEMORY]: residentMemory(pid, 'VmHWM') }
}
