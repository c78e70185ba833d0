import { describe, expect, it } from 'vitest'
import { JOURNEYS, render, travel } from './journeys.ts'

/**
 * How many files each journey passes, as journeys.ts counts. These only shrink: who makes a way shorter lowers them to
 * what `npm run journeys` counts then. The targets on the way are 18, 14 and 14.
 */
const CEILINGS: Readonly<Record<string, { way: number; all: number }>> = {
  // The files beside the way (all) rose by three, one and one with the question which process owns a session, and the
  // first two by one with the length of ids.
  // Before delivery ran its lanes in one loop, on a queue of std, and the JSON scanner was split: 36 and 67, 49 and 76, 35 and 56.
  'frame to callback': { way: 18, all: 54 },
  'webhook to state fact': { way: 19, all: 55 },
  'call to answer': { way: 14, all: 46 },
}

describe('the way of an event', () => {
  for (const journey of JOURNEYS) {
    it(`passes no more files than it did: ${journey.name}`, async () => {
      const passed = await travel(journey)
      const counted = { way: passed.filter(({ onTheWay }) => onTheWay).length, all: passed.length }
      const ceiling = CEILINGS[journey.name] ?? { way: 0, all: 0 }
      const longer = counted.way > ceiling.way || counted.all > ceiling.all
      expect(longer ? render(journey.name, passed) : 'no more').toBe('no more')
    })
  }
})
