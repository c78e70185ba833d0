import { expect, test } from 'vitest'
import { createPoll } from '../../src/sidecar/source/poll.ts'
import { VirtualClock } from '../support/clock.ts'
import { deafObserver, keepingLog } from '../support/ports.ts'

test('a full disk makes one log line in ten seconds, not one for each poll', async () => {
  const clock = new VirtualClock()
  const log = keepingLog()
  const poll = createPoll({
    interval: 1000,
    sweep: 600_000,
    hint: () => Promise.reject(new Error('full')),
    service: { authorized: () => true, onAuthorization: () => undefined },
    observer: deafObserver,
    clock,
    log,
  })
  poll.start()
  await clock.advance(31_000)
  poll.stop()
  expect(log.lines.map(({ details }) => 'times' in details && details.times)).toEqual([1, 10, 10, 10])
})
