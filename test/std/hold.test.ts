import { expect, test } from 'vitest'
import { Hold } from '../../src/std/hold.ts'
import { VirtualClock } from '../support/clock.ts'

function open() {
  const clock = new VirtualClock()
  const hold = new Hold(clock, 8)
  const done: number[] = []
  return { clock, hold, done, run: hold.behind((work: number) => void done.push(work)) }
}

test('work waits for urgent work, and begins in its order when that ends', () => {
  const { hold, done, run } = open()
  run(1)
  hold.begin()
  run(2)
  run(3)
  expect(done).toEqual([1])
  hold.end()
  run(4)
  expect(done).toEqual([1, 2, 3, 4])
})

test('urgent work that follows urgent work does not make other work wait longer', async () => {
  const { clock, hold, done, run } = open()
  hold.begin()
  run(1)
  await clock.advance(7)
  hold.begin()
  expect(done).toEqual([])
  await clock.advance(1)
  expect(done).toEqual([1])
  expect(clock.waiting).toBe(0)
})
