import { test } from 'vitest'
import { programUnderTest } from '../support/build.ts'
import { FULL } from '../support/full.ts'
import { playReplicas } from './replicas/round.ts'
import { playStorm } from './round.ts'

/** A part of what `npm run torture` does, on a fixed seed; SEED=… plays another. What the machine makes of one differs. */
const SEED = Number(process.env['SEED'] ?? 1)
const STORM = { kills: 3, ms: 30_000, longest: 1000, early: 0.3 }

test(
  'killed, stopped, cut off, out of disk and rejected at random: nothing lost, nothing reported in two ways',
  { timeout: 240_000 },
  async ({ expect }) => {
    const { faults, folder, tally } = await playStorm(
      { seed: SEED, build: programUnderTest(), mount: false },
      STORM,
    )
    expect(faults, `kept in ${folder}`).toEqual([])
    expect(tally.sum('killed by '), 'lives that were ended').toBeGreaterThan(0)
    expect(tally.sum('proxy fault '), 'faults of the network').toBeGreaterThan(0)
  },
)

test.skipIf(!FULL)(
  'two processes on one PostgreSQL, killed, frozen and cut off: none acts for what the other has, nothing is lost',
  { timeout: 240_000 },
  async ({ expect }) => {
    const { faults, folder, tally } = await playReplicas(
      { seed: 1, build: programUnderTest(), replicas: 2 },
      { kills: 3, ms: 15_000, between: 4000, longest: 3000 },
    )
    expect(faults, `kept in ${folder}`).toEqual([])
    expect(tally.sum('killed by '), 'lives that were ended').toBeGreaterThan(0)
    expect(tally.get('facts'), 'facts').toBeGreaterThan(0)
  },
)
