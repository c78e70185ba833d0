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
  const join = (time: { now(): number } = clock, processes = 3) => {
    const heeded: Refused[] = []
    let refused: (refused: Refused) => void = () => undefined
    let topics: Partial<ShardTopics> = {}
    const heedStored = shareBudget({
      service: {
        share: () => undefined,
        onRefused: (listener) => (refused = listener),
        heed: (one) => heeded.push(one),
        clockOffset: () => 0,
      },
      store: {
        settings: {
          checkpoint: () => Promise.resolve(checkpoint),
          setCheckpoint: (_name: string, value: string) => Promise.resolve(void (checkpoint = value)),
        },
        shards: { subscribe: (subscriber: Partial<ShardTopics>) => (topics = subscriber) },
      } as unknown as Store,
      clock: time,
      log: keepingLog(),
    })
    topics.population?.(processes)
    return {
      heedStored,
      heeded,
      refuse: (bucket: string) => refused({ bucket, wait: 30_000, code: 'rate_limited', status: 429 }),
      async look() {
        topics.woken?.({ topics: new Set(['waits']), hints: [] })
        await clock.settle()
      },
    }
  }
  return { clock, join, processes: [join(), join(), join()] as const }
}

it('two replicas that the service refuses at once are both heeded by the third', async () => {
  const { clock, processes } = world()
  const [first, second, third] = processes
  first.refuse('reads')
  second.refuse('creation')
  await clock.settle()
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
  processes[0].refuse('reads')
  await clock.settle()
  await clock.advance(10_000)
  const late = join()
  await late.heedStored()
  expect(late.heeded).toMatchObject([{ bucket: 'reads', wait: 20_000 }])
})

it('a process whose clock is an hour behind waits no longer than the service asked for', async () => {
  const { clock, processes, join } = world()
  processes[0].refuse('reads')
  await clock.settle()
  const late = join({ now: () => clock.now() - 3_600_000 })
  await late.heedStored()
  expect(late.heeded).toMatchObject([{ bucket: 'reads', wait: 30_000 }])
})

it('a wait outlives the only process, too', async () => {
  const { clock, join } = world()
  const alone = join(undefined, 1)
  alone.refuse('reads')
  await clock.settle()
  const next = join(undefined, 1)
  await next.heedStored()
  expect(next.heeded).toHaveLength(1)
})
