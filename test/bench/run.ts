import { messageOf } from '../../src/std/errors.ts'
import { measureDisk, type Disk } from './disk.ts'
import { judge, type Figures, type Measure, type Outcome, type Repetition } from './measure.ts'
import { summarise } from './report.ts'
import type { Contest, Scenario } from './scenario.ts'
import type { Workbench } from './workbench.ts'

export interface Results {
  outcomes: Outcome[]
  disks: Disk[]
  /** What could not be measured, and why. */
  faults: string[]
}

/** Puts both sides through `scenarios`, `runs` times each; the one that goes first changes every time. */
export async function runScenarios(
  scenarios: readonly Scenario[],
  wanted: (measure: Measure) => boolean,
  runs: number,
  bench: Workbench,
  progress: (text: string) => void,
): Promise<Results> {
  const results: Results = { outcomes: [], disks: [], faults: [] }
  for (const scenario of scenarios) {
    const asked = scenario.measures.filter(wanted)
    if (asked.length === 0) continue
    const names = asked.map(({ name }) => name).join(', ')
    try {
      const contest = await scenario.open(bench)
      const repetitions: Repetition[] = []
      while (repetitions.length < runs) {
        const disk = await measureDisk(bench.root)
        results.disks.push(disk)
        const figures = await runBoth(contest, repetitions.length % 2 === 0)
        repetitions.push({ ...figures, fdatasync: disk.paced })
        progress(`${names}: ${repetitions.length}/${runs}`)
      }
      const outcomes = asked.map((measure) => judge(measure, repetitions))
      results.outcomes.push(...outcomes)
      // The table comes at the end, maybe half an hour later.
      for (const outcome of outcomes) progress(summarise(outcome))
    } catch (error) {
      // The others can be measured all the same.
      results.faults.push(`${names}: ${messageOf(error)}`)
    } finally {
      await bench.clear()
    }
  }
  return results
}

async function runBoth(
  contest: Contest,
  baselineFirst: boolean,
): Promise<{ ours: Figures; baseline: Figures }> {
  const runBaseline = async (): Promise<Figures> => (await contest.baseline?.()) ?? {}
  if (baselineFirst) {
    const baseline = await runBaseline()
    return { baseline, ours: await contest.ours() }
  }
  const ours = await contest.ours()
  return { ours, baseline: await runBaseline() }
}
