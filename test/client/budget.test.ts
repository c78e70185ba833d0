import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/core/errors.ts'
import { Budget } from '../../src/client/transport/budget.ts'
import { ManualClock } from '../support/service/clock.ts'

const NAMES = { limit: null, remaining: 'x-left', reset: null, bucket: 'x-bucket' }

function budgetOf(jitter = 0): { budget: Budget; clock: ManualClock; reports: [string, number][] } {
  const clock = new ManualClock()
  const reports: [string, number][] = []
  const budget = new Budget({
    clock,
    random: { next: () => jitter, hex: () => '' },
    onRemaining: (bucket, remaining) => reports.push([bucket, remaining]),
  })
  return { budget, clock, reports }
}

/** Lets everything that can go on go on. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('an open bucket lets every request through at once', async () => {
  const { budget, clock } = budgetOf()
  await Promise.all(Array.from({ length: 100 }, () => budget.enter('reads', 0)))
  expect(clock.waiting).toBe(0)
})

// [fault auth-4]
test('a refusal closes its own bucket until Retry-After and leaves the other open', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 5000)
  const gone: string[] = []
  void budget.enter('reads', 60_000).then(() => gone.push('reads'))
  await budget.enter('creation', 0)
  clock.advance(4999)
  await settle()
  expect(gone).toEqual([])
  clock.advance(1)
  await settle()
  expect(gone).toEqual(['reads'])
})

test('waiting requests are sent in the order of their arrival: one first, then more and more at once', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 1000)
  const gone: number[] = []
  for (let one = 0; one < 20; one++) void budget.enter('reads', 60_000).then(() => gone.push(one))
  clock.advance(1000)
  const bursts: number[] = []
  let left = 0
  while (left < 20) {
    await settle()
    bursts.push(gone.length - left)
    for (; left < gone.length; left++) budget.leave('reads', true)
  }
  expect(bursts).toEqual([1, 2, 4, 8, 5])
  expect(gone).toEqual(Array.from({ length: 20 }, (_, one) => one))
})

test('a new request waits behind the requests that already wait', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 1000)
  const gone: string[] = []
  void budget.enter('reads', 60_000).then(() => gone.push('first'))
  void budget.enter('reads', 60_000).then(() => gone.push('second'))
  clock.advance(1000)
  void budget.enter('reads', 60_000).then(() => gone.push('late'))
  await settle()
  expect(gone).toEqual(['first'])
  budget.leave('reads', true)
  await settle()
  expect(gone).toEqual(['first', 'second', 'late'])
})

test('a second refusal after opening closes it again for requests that still wait', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 1000)
  const gone: number[] = []
  for (let one = 0; one < 3; one++) void budget.enter('reads', 60_000).then(() => gone.push(one))
  clock.advance(1000)
  await settle()
  budget.close('reads', 2000)
  budget.leave('reads', false)
  await settle()
  expect(gone).toEqual([0])
  clock.advance(2000)
  await settle()
  expect(gone).toEqual([0, 1])
})

// A 503 with Retry-After was reported as a used-up rate budget.
test.each([
  ['http_503', 503],
  ['http_429', 429],
  ['directory_unavailable', 503],
])('while every request is held for %s, a request that cannot wait gets that error', async (code, status) => {
  const { budget, clock } = budgetOf()
  budget.hold(new ServiceError({ code, status, message: 'wait', retryAfter: 60_000 }))
  const held = { code, status, retryAfter: 60_000, unsent: true }
  expect(budget.refusal('streams')).toMatchObject(held)
  await expect(budget.enter('reads', 1000)).rejects.toMatchObject(held)
  clock.advance(60_000)
  budget.close('reads', 5000)
  expect(budget.refusal('reads')).toMatchObject({ code: 'rate_limit_exceeded', status: 429, unsent: true })
})

test('of several refusals the longest wait counts', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 3000)
  budget.close('reads', 1000)
  clock.advance(1000)
  expect(budget.wait('reads')).toBe(2000)
})

test('replicas do not retry at the same moment', async () => {
  const { budget, clock } = budgetOf(0.5)
  budget.close('reads', 10_000)
  expect(clock.next).toBe(10_500)
})

describe('patience', () => {
  test('a wait that is known to be longer fails at once and says how long', async () => {
    const { budget } = budgetOf()
    budget.close('reads', 5000)
    const error = await budget.enter('reads', 1000).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(ServiceError)
    expect(error).toMatchObject({ code: 'rate_limit_exceeded', status: 429, retryAfter: 5000 })
  })

  test('a wait that turns out longer fails when the patience is used up', async () => {
    const { budget, clock } = budgetOf()
    budget.close('reads', 1000)
    const waiting = budget.enter('reads', 1500).catch((error: unknown) => error)
    budget.close('reads', 3000)
    clock.advance(1500)
    expect(await waiting).toMatchObject({ code: 'rate_limit_exceeded', retryAfter: 1500 })
  })

  test('the number of waiting requests is bounded', async () => {
    const { budget } = budgetOf()
    budget.close('reads', 1000)
    for (let one = 0; one < 1000; one++) void budget.enter('reads', 60_000)
    await expect(budget.enter('reads', 60_000)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  })
})

test.each([
  [0, 100],
  [null, 1000],
  [7_200_000, 7_200_000],
])('a Retry-After of %s closes for %s ms', (retryAfter, expected) => {
  const { budget } = budgetOf()
  budget.close('reads', retryAfter)
  expect(budget.wait('reads')).toBe(expected)
})

test('the headers show the rest of the budget, and the bucket of an operation', () => {
  const { budget, reports } = budgetOf()
  budget.learn('listTurns', 'reads', { 'x-left': '17', 'x-bucket': 'sessions.read' }, NAMES)
  budget.learn('listTurns', 'reads', { 'x-left': '16', 'x-bucket': 'sessions.read' }, NAMES)
  expect(budget.bucketOf('listTurns', 'reads')).toBe('sessions.read')
  expect(budget.bucketOf('health', 'reads')).toBe('reads')
  expect(budget.remaining()).toEqual({ 'sessions.read': 16 })
  expect(reports).toEqual([
    ['sessions.read', 17],
    ['sessions.read', 16],
  ])
})

test('invalid headers are ignored, and the number of stored buckets is bounded', () => {
  const { budget } = budgetOf()
  budget.learn('health', 'reads', { 'x-left': '-3', 'x-bucket': 'a b' }, NAMES)
  budget.learn('health', 'reads', { 'x-left': 'many' }, NAMES)
  expect(budget.remaining()).toEqual({})
  expect(budget.bucketOf('health', 'reads')).toBe('reads')
  for (let one = 0; one < 1000; one++) {
    budget.learn('health', 'reads', { 'x-left': '1', 'x-bucket': `b${one}` }, NAMES)
  }
  expect(Object.keys(budget.remaining()).length).toBeLessThanOrEqual(16)
})

test('stopping fails all waiting requests and leaves no timer', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 1000)
  const waiting = budget.enter('reads', 60_000).catch((error: unknown) => error)
  budget.stop(new ServiceError({ code: 'stopped', status: 0, message: 'stopped' }))
  expect(await waiting).toMatchObject({ code: 'stopped' })
  expect(clock.waiting).toBe(0)
})

// A stream is answered 429, and the client is closed while the body of that answer is still coming.
test('a refusal that is known only after the stop makes no timer', () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 1000)
  const stopped = new ServiceError({ code: 'stopped', status: 0, message: 'stopped' })
  budget.stop(stopped)
  budget.close('reads', 60_000)
  budget.hold(new ServiceError({ code: 'http_429', status: 429, message: 'wait', retryAfter: 3_600_000 }))
  budget.heed({ bucket: null, wait: 60_000, code: 'http_429', status: 429 })
  expect([clock.waiting, budget.heldFor]).toEqual([0, 0])
})

test('once it drains, what waits or would have to wait fails, and an open bucket lets requests through', async () => {
  const { budget, clock } = budgetOf()
  budget.close('reads', 5000)
  const waiting = budget.enter('reads', 60_000)
  const stopped = new ServiceError({ code: 'stopped', status: 0, message: 'stopped' })
  budget.drain(stopped)
  await expect(waiting).rejects.toBe(stopped)
  await expect(budget.enter('reads', 60_000)).rejects.toBe(stopped)
  await budget.enter('creation', 0)
  clock.advance(5000)
  await budget.enter('reads', 0)
})
