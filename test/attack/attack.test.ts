import { expect, test } from 'vitest'
import { FULL, RELEASE, repeats } from '../support/full.ts'
import { seededRandom } from '../support/ports.ts'
import { DOORS } from './doors.ts'

/** A part of what `npm run attack` does, on the same seed each time; in CI more of it, on another seed; a release plays both. */
const COUNTS: Readonly<Record<string, number>> = {
  webhooks: 20_000,
  frames: 10_000,
  splits: 10_000,
  replies: 2_000,
  answers: 10_000,
  tools: 10_000,
  documents: 1_000,
  configuration: 300,
  scenarios: 300,
  database: 60,
  admin: 1_000,
  relay: 300,
}
const SEEDS = [...(FULL && !RELEASE ? [] : [1]), ...(FULL ? [Date.now() % 1_000_000] : [])]
/** The door of costs needs all of them for one measurement. */
const COSTS = 256

test.each(Object.entries(DOORS))('hostile input at the door of %s does no harm', async (door, { attack }) => {
  const count = door === 'costs' ? COSTS : repeats(COUNTS[door] ?? 0)
  for (const seed of SEEDS) {
    const tally = await attack(count, seededRandom(seed)).catch((error: unknown) => {
      throw new Error(`npm run attack -- --door ${door} --seed ${seed}: ${String(error)}`, { cause: error })
    })
    expect(tally.counts.size, `seed ${seed}`).toBeGreaterThan(0)
  }
})
