import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClockOffset } from '../../src/std/clock-offset.ts'

const NOON = Date.parse('2026-11-21T12:00:00Z')
/** The wall clock was not set since the start: it equals the steady clock. */
const CLOCK = { now: () => NOON, steady: () => NOON }

/** The `Date` header of a service whose clock is `ahead` of ours, at `at` on our clock. */
const dateAt = (at: number, ahead: number): string => new Date(at + ahead).toUTCString()

test('is 0 until an answer came, and when an answer has no date', () => {
  const offset = new ClockOffset()
  expect(offset.from(CLOCK)).toBe(0)
  offset.learn(undefined, NOON, NOON + 10)
  offset.learn('yesterday', NOON, NOON + 10)
  expect(offset.from(CLOCK)).toBe(0)
})

test('clocks that agree have no offset, with any rounding to whole seconds', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000), { minLength: 1 }), fc.nat(400), (moments, latency) => {
      const offset = new ClockOffset()
      for (const at of moments)
        offset.learn(dateAt(NOON + at + latency / 2, 0), NOON + at, NOON + at + latency)
      expect(offset.from(CLOCK)).toBe(0)
    }),
  )
})

test('many answers narrow the offset', () => {
  const offset = new ClockOffset()
  for (let at = 0; at < 100_000; at += 137)
    offset.learn(dateAt(NOON + at + 5, 90_250), NOON + at, NOON + at + 10)
  expect(Math.abs(offset.from(CLOCK) - 90_250)).toBeLessThan(20)
})

test.each([7_200_000, -7_200_000])('a clock that is moved by %s ms resets the measurement', (moved) => {
  const offset = new ClockOffset()
  for (let at = 0; at < 10_000; at += 100) offset.learn(dateAt(NOON + at, 0), NOON + at, NOON + at + 10)
  expect(offset.from(CLOCK)).toBe(0)
  offset.learn(dateAt(NOON + 20_000, moved), NOON + 20_000, NOON + 20_010)
  expect(Math.abs(offset.from(CLOCK) - moved)).toBeLessThan(1000)
})

test('a wall clock that was set is seen at once, without a further answer', () => {
  const offset = new ClockOffset()
  for (let at = 0; at < 10_000; at += 100) offset.learn(dateAt(NOON + at, 60_000), NOON + at, NOON + at + 10)
  const setBack = { now: () => NOON - 3_600_000, steady: () => NOON }
  expect(Math.abs(offset.from(CLOCK) - 60_000)).toBeLessThan(1000)
  expect(offset.from(setBack)).toBe(offset.from(CLOCK) + 3_600_000)
})

/** What answers say, each as the service's whole second and when it was sent and received, milliseconds after noon. */
const after = (...answers: (readonly [at: number, sent: number, received: number])[]): ClockOffset => {
  const offset = new ClockOffset()
  for (const [at, sent, received] of answers) offset.learn(dateAt(NOON, at), NOON + sent, NOON + received)
  return offset
}

test('one answer gives the middle of the range that its rounding and its duration allow', () => {
  expect(after([90_000, 0, 10]).from(CLOCK)).toBe(90_495)
  expect(after([90_000, 0, 10]).from({ now: () => NOON, steady: () => NOON + 250 })).toBe(90_745)
})

test('is unknown until an answer has a time, and then uncertain by its latency and a second', () => {
  const offset = after()
  expect(offset.open).toBe(Infinity)
  offset.learn(undefined, NOON, NOON)
  expect(offset.open).toBe(Infinity)
  offset.learn(dateAt(NOON, 0), NOON, NOON + 250)
  expect(offset.open).toBe(1250)
})

test('a slow answer makes neither the clock of the service late nor a deadline over', () => {
  // It says what time it is when it answers.
  expect(after([90_000 + 20_000, 0, 20_010]).from(CLOCK)).toBe(90_740)
  expect(after([90_000 + 20_000, 0, 20_010], [90_000 + 21_000, 21_000, 21_010]).from(CLOCK)).toBe(90_495)
})

test.each([
  [[1000, 500, 500], 1000],
  [[1000, 500, 502], 0],
  [[-1000, 500, 500], -1000],
  [[-1000, 500, 498], 0],
] as const)('less than a second counts as no offset: %j is %s', (answer, expected) => {
  expect(after(answer).from(CLOCK)).toBe(expected)
})

test.each([
  [
    [0, 0, 0],
    [1000, 0, 0],
  ],
  [
    [1000, 0, 0],
    [0, 0, 0],
  ],
] as const)('two answers that just agree, %j and %j, leave exactly one possible time', (first, second) => {
  expect(after(first, second).from(CLOCK)).toBe(1000)
})
