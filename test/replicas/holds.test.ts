import { expect, it } from 'vitest'
import type { ShardTopics } from '../../src/core/shards.ts'
import type { Store } from '../../src/core/store.ts'
import { shareBudget } from '../../src/sidecar/holds.ts'
import type { ServiceClient } from '../../src/client/service.ts'
import { keepingLog } from '../support/ports.ts'
import { VirtualClock } from '../support/clock.ts'

type Refused = Parameters<ServiceClient['heed']>[0]

/** Three processes with one checkpoint. `stored`: runs when one of them has read it and has not written yet. */
function world() {
  const clock = new VirtualClock()
  let checkpoint: string | null = null
  /** The next writes that fail. */
  let failing = 0
  /** `offset`: from its clock to the service's; null: no answer has come yet. */
  const join = ({ ahead = 0, offset = null as number | null, processes = 3, credential = 'token' } = {}) => {
    let ours = credential
    const heeded: Refused[] = []
    let refused: (refused: Refused) => void = () => undefined
    let topics: Partial<ShardTopics> = {}
    const budget = shareBudget({
      service: {
        share: () => undefined,
        onRefused: (listener) => (refused = listener),
        heed: (one) => heeded.push(one),
        clockOffset: () => offset ?? 0,
        clockOpen: () => (offset === null ? Infinity : 1),
        credential: () => ours,
      },
      store: {
        settings: {
          checkpoint: () => Promise.resolve(checkpoint),
          setCheckpoint: async (_name: string, value: string) => {
            if (failing-- > 0) throw new Error('unreachable')
            checkpoint = value
          },
        },
        shards: { subscribe: (subscriber: Partial<ShardTopics>) => (topics = subscriber) },
      } as unknown as Store,
      clock: { now: () => clock.now() + ahead, after: (ms, run) => clock.after(ms, run) },
      log: keepingLog(),
    })
    topics.population?.(processes)
    return {
      budget,
      setToken: (token: string) => void (ours = token),
      heeded,
      async refuse(bucket: string) {
        refused({ bucket, wait: 30_000, code: 'rate_limited', status: 429 })
        await clock.settle()
      },
      async look() {
        topics.woken?.({ topics: new Set(['waits']), hints: [] })
        await clock.settle()
      },
    }
  }
  return {
    clock,
    join,
    failWrites: (count: number) => void (failing = count),
    processes: [join(), join(), join()] as const,
  }
}

it('two replicas that the service refuses at once are both heeded by the third', async () => {
  const { processes } = world()
  const [first, second, third] = processes
  await Promise.all([first.refuse('reads'), second.refuse('creation')])
  for (const one of [first, second, third, first, third]) await one.look()
  expect(new Map(third.heeded.map(({ bucket, wait }) => [bucket, wait]))).toEqual(
    new Map([
      ['reads', 30_000],
      ['creation', 30_000],
    ]),
  )
  expect(first.heeded.map(({ bucket }) => bucket)).toEqual(['creation'])
  expect(second.heeded.map(({ bucket }) => bucket)).toEqual(['reads'])
})

it('a process that starts while the service asks to wait heeds that before its first request', async () => {
  const { clock, processes, join } = world()
  await processes[0].refuse('reads')
  await clock.advance(10_000)
  const late = join()
  await late.budget.heed()
  expect(late.heeded).toMatchObject([{ bucket: 'reads', wait: 20_000 }])
})

it('a process whose clock is an hour behind waits no longer than the service asked for', async () => {
  const { processes, join } = world()
  await processes[0].refuse('reads')
  const late = join({ ahead: -3_600_000 })
  await late.budget.heed()
  expect(late.heeded).toMatchObject([{ bucket: 'reads', wait: 30_000 }])
})

it('a wait outlives the only process, too', async () => {
  const { join } = world()
  const alone = join({ processes: 1 })
  await alone.refuse('reads')
  const next = join({ processes: 1 })
  await next.budget.heed()
  expect(next.heeded).toHaveLength(1)
})

it('a process whose clock is a minute ahead of the service’s heeds a wait that it stored before its restart', async () => {
  const { clock, join } = world()
  await join({ ahead: 60_000, offset: -60_000, processes: 1 }).refuse('reads')
  await clock.advance(10_000)
  const next = join({ ahead: 60_000, processes: 1 })
  await next.budget.heed()
  expect(next.heeded).toMatchObject([{ bucket: 'reads', wait: 20_000 }])
})

it('a process with a new token does not wait for the old one', async () => {
  const { processes, join } = world()
  await processes[0].refuse('reads')
  const next = join({ credential: 'new token' })
  await next.budget.heed()
  expect(next.heeded).toEqual([])
  // What both were refused for stays stored for others.
  await next.refuse('creation')
  const [late, lateNext] = [join(), join({ credential: 'new token' })]
  await Promise.all([late.budget.heed(), lateNext.budget.heed()])
  expect([late.heeded, lateNext.heeded]).toMatchObject([[{ bucket: 'reads' }], [{ bucket: 'creation' }]])
})

it('a wait that could not be stored is stored a second later', async () => {
  const { clock, processes, failWrites } = world()
  const [first, second] = processes
  failWrites(2)
  await first.refuse('reads')
  await clock.advance(2500)
  await second.look()
  expect(second.heeded).toMatchObject([{ bucket: 'reads' }])
})

it('after a stop, a wait that could not be stored has no timer', async () => {
  const { clock, processes, failWrites } = world()
  const [first, second] = processes
  failWrites(2)
  await first.refuse('reads')
  expect(clock.waiting).toBe(1)
  first.budget.stop()
  expect(clock.waiting).toBe(0)
  // The store refuses it only after the stop.
  const refused = second.refuse('creation')
  second.budget.stop()
  await refused
  expect(clock.waiting).toBe(0)
})

it('a wait that another replica stored for the new token is heeded once this one has that token, too', async () => {
  const { processes, join } = world()
  const [late] = processes
  await join({ credential: 'new token' }).refuse('reads')
  await late.look()
  expect(late.heeded).toEqual([])
  late.setToken('new token')
  for (let times = 0; times < 2; times++) await late.budget.heed()
  expect(late.heeded).toMatchObject([{ bucket: 'reads', wait: 30_000 }])
})

it('a process that knows the service’s clock waits as long as the service asked for, in each replica', async () => {
  const { clock, join } = world()
  await join({ ahead: -60_000, offset: 60_000 }).refuse('reads')
  await clock.advance(10_000)
  const known = join({ ahead: 5000, offset: -5000 })
  await known.budget.heed()
  expect(known.heeded).toMatchObject([{ bucket: 'reads', wait: 20_000 }])
})

it('a process that starts heeds the wait of another machine whose clock is slow', async () => {
  const { clock, join } = world()
  await join({ ahead: -60_000, offset: 60_000 }).refuse('reads')
  await clock.advance(5000)
  const next = join()
  await next.budget.heed()
  expect(next.heeded).toMatchObject([{ bucket: 'reads', wait: 25_000 }])
})
