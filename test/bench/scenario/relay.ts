import { Type } from 'typebox'
import { Child } from '../child.ts'
import type { Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { connected, loadFrames, PATIENCE } from '../stage.ts'
import { Subject } from '../subject.ts'

const NAME = 'relay'
const READERS = 500
/** Frames a second, and in all: five seconds. */
const PACE = 1000
const FRAMES = 5000

/** One upstream stream to many readers; the baseline is the same sidecar with one. */
export const relay: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'frames/s',
      digits: 0,
      judge: (ours, baseline) => ours / baseline,
      judged: `# × one reader's pace`,
      floor: { at: 'least', value: 0.85 },
    },
  ],
  async open(bench) {
    const count = bench.scaled(FRAMES)
    const source = bench.use(await Child.fork('source'))
    const service = await source.ask('address', Type.String())
    const run = async (readers: number): Promise<Figures> => {
      await loadFrames(source, count)
      await using subject = await Subject.start(bench.folder(), {
        service: { base_url: service, token: 'svc_pat_bench' },
      })
      await connected(source)
      await using audience = await Child.fork('audience')
      await audience.do('read', { url: `${subject.adminUrl}/v1/events`, readers, frames: count })
      const sending = source.ask('pace', Type.Array(Type.Number()), { perSecond: PACE }, PATIENCE)
      const lastAt = await audience.ask('done', Type.Number(), undefined, PATIENCE)
      const [firstAt = Number.NaN] = await sending
      await subject.stop()
      return { [NAME]: (count / (lastAt - firstAt)) * 1000 }
    }
    return { ours: () => run(READERS), baseline: () => run(1) }
  },
}
