import path from 'node:path'
import type { Measure } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { Databases } from '../databases.ts'
import { Stage } from '../stage.ts'
import { costOf, FRAMES, rateOf } from './burst.ts'

/** A change may cost so much processor time, and no more: less cannot be distinguished from chance. */
const WORST = 1.03
/** The rate varies more. */
const SLOWEST = 0.9
/** The facts of one callback. */
const SIZES = [1, 16] as const

/** Each burst through this program, beside the same burst through the program of another checkout in `folder`. */
export function earlierOf(folder: string): Scenario[] {
  const program = path.resolve(folder, 'src/main.js')
  return [earlier('earlier', program, false), earlier('earlier, postgres', program, true)]
}

function earlier(name: string, program: string, isDatabase: boolean): Scenario {
  const rows = SIZES.map((batch) => ({ batch, row: batch === 1 ? name : `${name}, batches of ${batch}` }))
  return {
    measures: rows.flatMap(({ row }) => [rateOf(row, SLOWEST, 1), processorOf(row)]),
    async open(bench) {
      const databases = isDatabase ? await Databases.start(bench) : null
      const stage = await Stage.open(bench)
      const count = bench.scaled(FRAMES)
      const through = async (more: { program?: string }): Promise<Record<string, number>> => {
        const figures: Record<string, number> = {}
        for (const { batch, row } of rows) {
          await stage.load(count)
          const store = databases === null ? {} : { store: await databases.create() }
          await using subject = await stage.startSubject('now', { batch, ...store, ...more })
          const { rate, processor } = await costOf(stage, count, subject.pid)
          await subject.stop()
          figures[row] = rate
          figures[processorOf(row).name] = processor
        }
        return figures
      }
      return { ours: () => through({}), baseline: () => through({ program }) }
    },
  }
}

function processorOf(row: string): Measure {
  return {
    name: `${row}, processor time`,
    unit: 'CPU s/10,000',
    digits: 2,
    judge: (ours, baseline) => ours / baseline,
    judged: '# × baseline',
    floor: { at: 'most', value: WORST },
    goal: { value: 1 },
  }
}
