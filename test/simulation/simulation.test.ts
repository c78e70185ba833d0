import { describe, expect, it } from 'vitest'
import { campaign } from './campaign.ts'
import { play } from './chunk.ts'
import { crashAt } from './exhaustive.ts'
import { FIXED } from './fixed.ts'
import { run, type Outcome } from './run.ts'

/** Milliseconds of this machine that a test may take; on a slow one fewer places are tried. */
const BUDGET = 8000

function said({ seed, mode, violation }: Outcome): string {
  return `seed ${seed}, ${mode}: ${violation === null ? 'held' : `${violation.invariant}: ${violation.message}`}`
}

describe('the simulated sidecar', () => {
  it('does the same twice with the same seed', { timeout: 60_000 }, async () => {
    for (const seed of [1, 2, 3]) {
      const first = await run({ seed, mode: 'liveness' })
      const second = await run({ seed, mode: 'liveness' })
      expect(second.hash).toBe(first.hash)
    }
  })

  it('does the same on every core, whatever was played before', { timeout: 120_000 }, async () => {
    const apart = await campaign({ first: 1, count: 60, mode: 'liveness', threads: 2 })
    const together = await play({ from: 1, to: 61, mode: 'liveness' })
    expect(apart.seeds).toBe(60)
    expect(apart.traces).toBe(together.traces)
  })

  // [fault process-3]
  it('comes through a crash at any place of a turn with two calls', { timeout: 60_000 }, async () => {
    const scenario = FIXED['two calls at once']
    if (scenario === undefined) throw new Error('there is no such scenario')
    const begun = performance.now()
    // Every seventh passage: all of them are `npm run simulate -- --exhaustive`.
    for (let passage = 5; passage < 700 && performance.now() - begun < BUDGET; passage += 7) {
      const outcome = await crashAt(scenario, [passage])
      expect(`crash at ${passage}: ${said(outcome)}`).toBe(`crash at ${passage}: seed 7, liveness: held`)
    }
  })
})
