import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { steadyTime, systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'

describe('the steady time', () => {
  const machine = { wall: 1_000_000, running: 5000, booted: 90_000 }
  const pass = (ms: number, ...clocks: (keyof typeof machine)[]): void => {
    for (const clock of clocks) machine[clock] += ms
  }
  const steady = steadyTime({
    wall: () => machine.wall,
    running: () => machine.running,
    booted: () => machine.booted,
  })

  test('goes on while the machine is suspended, and not when the wall clock is set', () => {
    expect(steady()).toBe(5000)
    pass(40, 'wall', 'running', 'booted')
    expect(steady()).toBe(5040)
    pass(3_600_000, 'wall')
    expect(steady()).toBe(5040)
    pass(-7_200_000, 'wall')
    expect(steady()).toBe(5040)
    pass(30_000, 'wall', 'booted')
    expect(steady()).toBe(35_040)
    pass(60, 'wall', 'running', 'booted')
    pass(20_000, 'wall', 'booted')
    expect(steady()).toBe(55_100)
  })
})

describe('the clock', () => {
  const clock = systemClock()

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
  afterEach(() => void vi.useRealTimers())

  // [fault process-8]
  test('does not jump when the wall clock is moved', () => {
    const before = clock.steady()
    vi.setSystemTime(Date.now() + 3_600_000)
    expect(clock.steady() - before).toBeLessThan(1000)
    expect(Math.abs(clock.now() - clock.steady())).toBeGreaterThan(3_590_000)
  })

  test('waits for the given time, even thirty days, which is more than a timer of Node allows', () => {
    const rung: string[] = []
    clock.after(30 * 86_400_000, () => rung.push('month'))
    clock.after(-5, () => rung.push('now'))
    vi.advanceTimersByTime(0)
    expect(rung).toEqual(['now'])
    vi.advanceTimersByTime(30 * 86_400_000 - 1)
    expect(rung).toEqual(['now'])
    vi.advanceTimersByTime(1)
    expect(rung).toEqual(['now', 'month'])
  })

  test('forgets a timer that is cancelled, at any time', () => {
    const rung: string[] = []
    const timer = clock.after(30 * 86_400_000, () => rung.push('month'))
    vi.advanceTimersByTime(29 * 86_400_000)
    timer.cancel()
    vi.advanceTimersByTime(2 * 86_400_000)
    expect(rung).toEqual([])
  })

  test('runs soon what must wait for the rest of this tick', async () => {
    const order: string[] = []
    const ran = new Promise<void>((resolve) =>
      clock.soon(() => {
        order.push('soon')
        resolve()
      }),
    )
    await Promise.resolve()
    order.push('microtask')
    await ran
    expect(order).toEqual(['microtask', 'soon'])
  })

  test('runs in the same turn what must not wait for sockets and timers', async () => {
    const order: string[] = []
    const both = [undefined, 'same' as const].map(
      (turn) =>
        new Promise<void>((resolve) => clock.soon(() => resolve(void order.push(turn ?? 'next')), turn)),
    )
    await Promise.all(both)
    expect(order).toEqual(['same', 'next'])
  })
})

test('chance gives numbers in [0, 1) and hex of the length asked for', () => {
  const random = systemRandom()
  const numbers = Array.from({ length: 1000 }, () => random.next())
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
  expect(random.hex(16)).toMatch(/^[0-9a-f]{32}$/)
  expect(random.hex(16)).not.toBe(random.hex(16))
})
