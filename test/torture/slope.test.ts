import { expect, test } from 'vitest'
import { slopeOf } from './slope.ts'

test('a slope is found behind outliers, and none where there is none', () => {
  const line = Array.from({ length: 30 }, (_, x): [number, number] => [x, 5 + 2 * x])
  const flat = line.map(([x], index): [number, number] => [x, 7 + (index % 3)])
  expect(slopeOf(line.with(3, [3, 9000]).with(20, [20, -9000]))).toBeCloseTo(2, 5)
  expect(Math.abs(slopeOf(flat))).toBeLessThan(0.05)
})
