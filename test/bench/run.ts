import { measureDisk, type Disk } from './disk.ts'
import { judge, type Figures, type Measure, type Outcome, type Repetition } from './measure.ts'
import type { Contest, Scenario } from './scenario.ts'
import type { Workbench } from './workbench.ts'

export interface Results {
  outcomes: Outcome[]
  disks: Disk[]
}

/** Puts both sides through `scenarios`, `runs` times each; the one that goes first changes every time. */
export async function runScenarios(
  scenarios: readonly Scenario[],
  wanted: (measure: Measure) => boolean,
  runs: number,
  bench: Workbench,
  progress: (text: string) => void,
): Promise<Results> {
  const outcomes: Outcome[] = []
  const disks: Disk[] = []
  for (const { measures, open } of scenarios) {
    const asked = measures.filter(wanted)
    if (asked.length === 0) continue
    const contest = await open(bench)
    const repetitions: Repetition[] = []
    while (repetitions.length < runs) {
      const disk = await measureDisk(bench.root)
      disks.push(disk)
      const figures = await runBoth(contest, repetitions.length % 2 === 0)
      repetitions.push({ ...figures, fdatasync: disk.paced })
      progress(`${asked.map(({ name }) => name).join(', ')}: ${repetitions.length}/${runs}`)
    }
    await bench.clear()
    outcomes.push(...asked.map((measure) => judge(measure, repetitions)))
  }
  return { outcomes, disks }
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
