import { now } from '../clock.ts'
import { residentMemory } from '../usage.ts'
import type { Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { Stage } from '../stage.ts'

const TIME = 'catch-up'
const MEMORY = 'memory in catch-up'
/** As many as the service replays on one connection. */
const FRAMES = 50_000

/** A replay into an empty database: the time from the start of the process to the last callback, and the most memory it took. */
export const catchUp: Scenario = {
  measures: [
    {
      name: TIME,
      unit: 's',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × baseline',
      floor: { at: 'most', value: 1.35 },
      goal: { value: 1.1 },
    },
    {
      name: MEMORY,
      unit: 'MB',
      digits: 0,
      judge: (ours) => ours,
      judged: '# MB',
      floor: { at: 'most', value: 190 },
      goal: { value: 160 },
    },
  ],
  async open(bench) {
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES)
    return {
      async ours() {
        await stage.load(count, { replay: true })
        const begun = now()
        await using subject = await stage.startSubject('beginning')
        const figures = await follow(stage, begun, subject.pid)
        await subject.stop()
        return figures
      },
      async baseline() {
        await stage.load(count, { replay: true })
        const begun = now()
        await using baseline = await stage.startBaseline('beginning')
        return await follow(stage, begun, baseline.pid)
      },
    }
  },
}

async function follow(stage: Stage, begun: number, pid: number): Promise<Figures> {
  const lastAt = await stage.delivered()
  return { [TIME]: (lastAt - begun) / 1000, [MEMORY]: residentMemory(pid, 'VmHWM') }
}
