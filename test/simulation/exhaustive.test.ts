import { expect, it } from 'vitest'
import { brokenText, exhaustOne } from './exhaustive.ts'
import { FIXED } from './fixed.ts'

/** Milliseconds: some seconds on a machine of its own, far more on one that is shared. */
const LONG = 600_000

// [fault process-3]
it.each(Object.entries(FIXED))(
  'comes through a crash at every place of: %s',
  { timeout: LONG },
  async (name, scenario) => {
    const { singles, played, broken } = await exhaustOne(scenario, 0)
    expect(broken === null ? 'held' : brokenText(name, broken)).toBe('held')
    expect(singles).toBeGreaterThan(200)
    expect(played).toBe(singles)
  },
)
