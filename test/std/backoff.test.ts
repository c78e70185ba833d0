import { expect, test } from 'vitest'
import { backoff } from '../../src/std/backoff.ts'
import { longestWaits, seededRandom } from '../support/ports.ts'

const POLICY = { base: 100, max: 5000 }

test('back-off doubles with each attempt up to its limit, however many there are', () => {
  const waits = [1, 2, 3, 6, 7, 1000, 1e9].map((attempt) => backoff(POLICY, attempt, longestWaits))
  expect(waits).toEqual([100, 200, 400, 3200, 5000, 5000, 5000])
  expect(backoff({ base: 1, max: Number.MAX_VALUE }, 1e9, longestWaits)).toBe(2 ** 40)
})

test('a backoff is random from zero to its limit, and never below its floor', () => {
  const none = { ...seededRandom(), next: () => 0 }
  expect([backoff(POLICY, 3, none), backoff(POLICY, 3, none, 7000)]).toEqual([0, 7000])
  expect(backoff(POLICY, 3, { ...none, next: () => 0.5 })).toBe(200)
})
