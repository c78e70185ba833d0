import { expect, test } from 'vitest'
import { seededRandom } from '../support/ports.ts'
import { DOORS } from './attack.ts'

/** A part of what `npm run attack` does, on the same seed each time and on another one. */
const COUNTS: Readonly<Record<string, number>> = {
  webhooks: 20_000,
  frames: 10_000,
  answers: 10_000,
  documents: 100,
}

test.each(Object.entries(DOORS))(
  'hostile input at the door of %s does no harm',
  { timeout: 60_000 },
  async (door, attack) => {
    for (const seed of [1, Date.now() % 1_000_000]) {
      await expect(attack(COUNTS[door] ?? 0, seededRandom(seed)), `seed ${seed}`).resolves.toMatch(/\d/)
    }
  },
)
