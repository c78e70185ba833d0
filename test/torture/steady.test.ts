import { expect, it } from 'vitest'
import { grows, returned, type Asked, type Slope } from './steady.ts'

/** A process with so many timers, one number for each time that it is asked; the machine knows no such process. */
function asked(...timers: number[]): Asked {
  return {
    life: { pid: -1 },
    ask: async () => ({
      status: 200,
      text: `nodejs_active_resources{type="Timeout"} ${timers.length > 1 ? timers.shift() : timers[0]}`,
    }),
  }
}

const SLOPE: Slope = { name: 'timers', unit: '', slope: 2, growth: 4, margin: 3, first: 10, last: 14 }

const WITHOUT = { descriptors: 0, timers: 10, 'other resources': 0 }

it('finds timers that live on after the work', async () => {
  expect(await returned(asked(40), WITHOUT, 0)).toEqual([
    { invariant: 'I11', message: 'when idle there are 40 timers, and 10 without the work' },
  ])
})

it('waits for what ends by itself', async () => {
  expect(await returned(asked(40, 12), WITHOUT, 60_000)).toEqual([])
})

it('finds what grows by more than its margin while the same work goes on', () => {
  expect(grows([SLOPE])).toMatchObject([{ invariant: 'I11' }])
  expect(grows([{ ...SLOPE, growth: 3 }])).toEqual([])
})
