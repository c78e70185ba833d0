import { openGrown } from '../grown.ts'
import type { Figures } from '../measure.ts'
import type { Filled } from '../options.ts'
import type { Scenario } from '../scenario.ts'
import { Stage } from '../stage.ts'
import { FRAMES, rateOf, sendBurst } from './burst.ts'

export const GROWN = 'grown'

/** A burst into a store that holds so many facts already; the baseline is the same burst into an empty store. */
export function grown(filled: Filled): Scenario {
  return {
    measures: [{ ...rateOf(GROWN, 0.95, 1), judged: '# of an empty store' }],
    async open(bench) {
      const stage = await Stage.open(bench)
      const count = bench.scaled(FRAMES)
      const { folder, nextSeq } = openGrown(filled)
      // What a burst leaves in the store is not delivered a second time: the next one goes on after it.
      let first = nextSeq
      const through = async (folder?: string): Promise<Figures> => {
        await stage.load(count, { first, oldSessions: folder === undefined ? 0 : filled.sessions })
        first += count
        await using subject = await stage.startSubject('now', { folder })
        await stage.listed()
        const { from, to } = await sendBurst(stage)
        await subject.stop()
        return { [GROWN]: (count / (to - from)) * 1000 }
      }
      return { ours: () => through(folder), baseline: () => through() }
    },
  }
}
