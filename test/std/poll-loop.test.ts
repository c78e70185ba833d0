import { expect, test } from 'vitest'
import { createPollLoop } from '../../src/std/poll-loop.ts'
import { VirtualClock } from '../support/clock.ts'

test('a pass that ends after the stop claims nothing and reports nothing', async () => {
  const clock = new VirtualClock()
  const work = Promise.withResolvers<void>()
  const asked: string[] = []
  const pollLoop = createPollLoop({
    clock,
    pass: () => work.promise,
    next: async () => {
      asked.push('next')
      return null
    },
    onError: () => asked.push('error'),
  })
  pollLoop.start()
  await clock.settle()
  pollLoop.stop()
  // The store is closed by now.
  work.reject(new Error('the store is closed'))
  await clock.settle()
  expect(asked).toEqual([])
  expect(clock.waiting).toBe(0)
})

test('a pass that fails is reported, and tried again', async () => {
  const clock = new VirtualClock()
  const asked: string[] = []
  const pollLoop = createPollLoop({
    clock,
    pass: async () => {
      asked.push('pass')
      throw new Error('busy')
    },
    next: async () => null,
    onError: () => asked.push('error'),
  })
  pollLoop.start()
  await clock.advance(5000)
  pollLoop.stop()
  expect(asked).toEqual(['pass', 'error', 'pass', 'error'])
})
