import { expect, it } from 'vitest'
import { NOTHING } from './faults.ts'
import { FIXED } from './fixed.ts'
import { SEED } from './exhaustive.ts'
import { run } from './run.ts'
import type { When } from './sites.ts'

/** Plays a fixed scenario with a crash at the `nth` passage of one place. */
async function crash(name: string, site: string, when: When, nth: number): Promise<string> {
  const scenario = FIXED[name]
  if (scenario === undefined) throw new Error(`there is no scenario "${name}"`)
  let passages = 0
  const { violation, crashes } = await run({
    seed: SEED,
    mode: 'liveness',
    scenario,
    plan: { decide: (_, at, side) => (at === site && side === when && ++passages === nth ? 'crash' : null) },
  })
  if (violation !== null) return `${violation.invariant}: ${violation.message}`
  return crashes === 0 ? 'not reached' : 'held'
}

it('a crash after the items were asked for does not lose them: they are stored before their hint goes', async () => {
  const outcomes: string[] = []
  while (outcomes.at(-1) !== 'not reached')
    outcomes.push(
      await crash('polling what is over already', 'http list items', 'after', outcomes.length + 1),
    )
  expect(outcomes.length).toBeGreaterThan(1)
  expect(new Set(outcomes)).toEqual(new Set(['held', 'not reached']))
})

it('a session that is gone is noticed also when only its turns are read: they were asked for without end', async () => {
  const scenario = FIXED['a session that is deleted while its artifacts are collected']
  if (scenario === undefined) throw new Error('there is no such scenario')
  const { violation } = await run({ seed: SEED, mode: 'liveness', scenario, plan: NOTHING })
  expect(violation).toBeNull()
})
