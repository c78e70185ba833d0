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
  const join = () => {
    const heeded: Refused[] = []
    let refused: (refused: Refused) => void = () => undefined
    let topics: Partial<ShardTopics> = {}
    shareBudget({
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
      clock,
      log: keepingLog(),
    })
    topics.population?.(3)
    return {
      heeded,
      refuse: (bucket: string) => refused({ bucket, wait: 30_000, code: 'rate_limited', status: 429 }),
      async look() {
        topics.woken?.({ topics: new Set(['waits']), hints: [] })
        await clock.settle()
      },
    }
  }
  return { clock, processes: [join(), join(), join()] as const }
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
