import { describe, expect, it } from 'vitest'
import { crashAt } from './exhaustive.ts'
import { FIXED } from './fixed.ts'
import { run, type Outcome } from './run.ts'

/** Seeds in `npm test`; `npm run simulate` plays as many as one likes. */
const SEEDS = 120
/** Milliseconds of this machine that a test may take; on a slow one fewer seeds are played. */
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

  it(
    'loses nothing, repeats nothing and comes to rest, whatever goes wrong',
    { timeout: 60_000 },
    async () => {
      const begun = performance.now()
      for (let seed = 1; seed <= SEEDS && performance.now() - begun < BUDGET; seed++) {
        const outcome = await run({ seed, mode: 'liveness' })
        expect(said(outcome)).toBe(`seed ${seed}, liveness: held`)
      }
    },
  )

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
