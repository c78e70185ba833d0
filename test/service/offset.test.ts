import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClockOffset } from '../../src/service/offset.ts'

const NOON = Date.parse('2026-11-21T12:00:00Z')

/** The `Date` header of a service whose clock is `ahead` of ours, at `at` on our clock. */
const dateAt = (at: number, ahead: number): string => new Date(at + ahead).toUTCString()

test('is 0 until an answer came, and when an answer has no date', () => {
  const offset = new ClockOffset()
  expect(offset.milliseconds).toBe(0)
  offset.learn(undefined, NOON, NOON + 10)
  offset.learn('yesterday', NOON, NOON + 10)
  expect(offset.milliseconds).toBe(0)
})

test('clocks that agree have none, whatever the whole seconds make of them', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000), { minLength: 1 }), fc.nat(400), (moments, latency) => {
      const offset = new ClockOffset()
      for (const at of moments)
        offset.learn(dateAt(NOON + at + latency / 2, 0), NOON + at, NOON + at + latency)
      expect(offset.milliseconds).toBe(0)
    }),
  )
})

test('many answers close in on it to less than one answer can tell', () => {
  const offset = new ClockOffset()
  for (let at = 0; at < 100_000; at += 137)
    offset.learn(dateAt(NOON + at + 5, 90_250), NOON + at, NOON + at + 10)
  expect(Math.abs(offset.milliseconds - 90_250)).toBeLessThan(20)
})

test.each([7_200_000, -7_200_000])('a clock that is moved by %s ms makes it learn anew', (moved) => {
  const offset = new ClockOffset()
  for (let at = 0; at < 10_000; at += 100) offset.learn(dateAt(NOON + at, 0), NOON + at, NOON + at + 10)
  expect(offset.milliseconds).toBe(0)
  offset.learn(dateAt(NOON + 20_000, moved), NOON + 20_000, NOON + 20_010)
  expect(Math.abs(offset.milliseconds - moved)).toBeLessThan(1000)
})

test('an exchange during which our own clock went back teaches nothing', () => {
  const offset = new ClockOffset()
  offset.learn(dateAt(NOON, 0), NOON, NOON - 3_600_000)
  expect(offset.milliseconds).toBe(0)
})
