import { expect, it } from 'vitest'
import { campaign } from './campaign.ts'
import { openJournal } from './journal.ts'
import { cpuSince, progressLine, replayLine } from './report.ts'
import type { Broken } from './tally.ts'

/** Other seeds than `npm run simulate` begins with, of which CI plays many after the tests. */
const FIRST = 2_000_000
const SEEDS = 40
/** On a slow machine fewer are played, milliseconds. */
const BUDGET = 60_000
/** Where CI has two cores, both. */
const THREADS = 2

it.each([
  { processes: 'one process', replicas: null, seeds: SEEDS, least: SEEDS / 4 },
  { processes: 'two replicas', replicas: 2, seeds: SEEDS / 4, least: SEEDS / 16 },
  { processes: 'three replicas', replicas: 3, seeds: SEEDS / 8, least: SEEDS / 32 },
])(
  '$processes: loses nothing, repeats nothing and becomes idle, under every fault',
  { timeout: 180_000 },
  async ({ replicas, seeds, least }) => {
    const cpu = process.cpuUsage()
    const stop = AbortSignal.timeout(BUDGET)
    const journal = openJournal(null, 'liveness', FIRST)
    await campaign({ journal, end: FIRST + seeds, threads: THREADS, stop, replicas })
    const { tally } = journal
    console.log(`simulation: ${progressLine(tally, cpuSince(cpu))}`)
    const again = (one: Broken): string => replayLine(one, replicas)
    expect(
      [...tally.broken.values()].map((one) => `${one.invariant}: ${one.message} (${again(one)})`),
    ).toEqual([])
    // What the seeds are there for did happen.
    expect(tally.seeds).toBeGreaterThan(least)
    expect(tally.faults.get('crash')).toBeGreaterThan(tally.seeds / 2)
    expect(tally.lives).toBeGreaterThan(tally.seeds * 1.5)
  },
)
