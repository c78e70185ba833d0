import { expect, it } from 'vitest'
import { FULL } from '../support/full.ts'
import { brokenText, exhaustOne } from './exhaustive.ts'
import { FIXED } from './fixed.ts'

/** Milliseconds: some seconds on a machine of its own, far more on one that is shared. */
const LONG = 600_000

/** Of the places where it may crash, each so many one; `npm run simulate -- --exhaustive` plays them all. */
const EVERY = FULL ? 20 : 80

// [fault process-3]
it.each(Object.entries(FIXED))(
  'survives a crash at points all over: %s',
  { timeout: LONG },
  async (name, scenario) => {
    const { singles, played, broken } = await exhaustOne(scenario, 0, EVERY)
    expect(broken === null ? 'held' : brokenText(name, broken)).toBe('held')
    expect(singles).toBeGreaterThan(200)
    expect(played).toBe(Math.ceil(singles / EVERY))
  },
)
