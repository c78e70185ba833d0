import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hint } from '../../src/core/hint.ts'
import { fanOut } from '../../src/core/observer.ts'
import type { Service } from '../../src/core/ports.ts'
import type { WebhookSubscription } from '../../src/core/resource.ts'
import { createSubscriptionKeeper } from '../../src/sidecar/source/subscription.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import type { Store } from '../../src/core/store.ts'
import { StoreError } from '../../src/core/store-error.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'
import { refused } from './stream-world.ts'

const URL = 'https://app.example.com/webhooks'
const INTERVAL = 900_000

function world() {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  onTestFinished(() => store.close())
  const hints: Hint[] = []
  const active: boolean[] = []
  let made = 0
  const held = {
    clock,
    log,
    store,
    hints,
    active,
    subscriptions: [] as WebhookSubscription[],
    refusal: null as Error | null,
    authorized: true,
    storeFails: false,
    calls: [] as string[],
  }
  const refuse = (call: string): void => {
    held.calls.push(call)
    if (held.refusal !== null) throw held.refusal
  }
  const service: Pick<Service, 'listWebhooks' | 'createWebhook' | 'deleteWebhook' | 'authorized'> = {
    async listWebhooks() {
      refuse('list')
      return held.subscriptions.map((subscription) => ({ ...subscription, secret: null }))
    },
    async createWebhook(url) {
      refuse('create')
      const subscription = { id: `wh_${++made}`, url, events: ['*'], active: true, secret: `secret-${made}` }
      held.subscriptions.push(subscription)
      return subscription
    },
    async deleteWebhook(id) {
      refuse(`delete ${id}`)
      held.subscriptions = held.subscriptions.filter((subscription) => subscription.id !== id)
    },
    authorized: () => held.authorized,
  }
  const make = (url = URL, shared: Store = store) => {
    const keeper = createSubscriptionKeeper({
      url,
      interval: INTERVAL,
      service: service as Service,
      store: shared,
      hint: async (more) => {
        if (held.storeFails) throw new StoreError('full')
        hints.push(...more)
      },
      observer: fanOut([{ subscription: (now) => active.push(now) }]),
      clock,
      random: longestWaits,
      log,
    })
    onTestFinished(() => keeper.stop())
    return keeper
  }
  return Object.assign(held, { make })
}

const theirs = (more: Partial<WebhookSubscription> = {}): WebhookSubscription => ({
  id: 'wh_theirs',
  url: URL,
  events: ['*'],
  active: true,
  secret: null,
  ...more,
})

describe('the subscription keeper', () => {
  it('makes the subscription once, keeps its secret, and finds it again after a restart', async () => {
    const held = world()
    const keeper = held.make()
    await keeper.start()
    expect([keeper.secrets.current, held.active.at(-1)]).toEqual([['secret-1'], true])
    keeper.stop()
    const next = held.make()
    await next.start()
    expect([next.secrets.current, held.subscriptions.length]).toEqual([['secret-1'], 1])
  })

  // [fault webhook-7]
  it('replaces one whose secret it does not have, and leaves those of other addresses alone', async () => {
    const held = world()
    held.subscriptions = [theirs(), theirs({ id: 'wh_other', url: 'https://elsewhere.example.com' })]
    await held.make().start()
    expect(held.subscriptions.map(({ id }) => id)).toEqual(['wh_other', 'wh_1'])
    expect(held.hints).toMatchObject([{ sessionId: null, scope: 'turns' }])
  })

  it('deletes its own of an earlier address, and accepts its secret for deliveries under way', async () => {
    const held = world()
    held.subscriptions = [theirs({ id: 'wh_other', url: 'https://elsewhere.example.com' })]
    const before = held.make('https://old.example.com/webhooks')
    await before.start()
    before.stop()
    await held.clock.advance(1000)
    const keeper = held.make()
    await keeper.start()
    expect(held.subscriptions.map(({ id }) => id)).toEqual(['wh_other', 'wh_2'])
    expect(keeper.secrets.current).toEqual(['secret-2', 'secret-1'])
  })

  it('requests a full read after its first subscription too, which may come long after the start', async () => {
    const held = world()
    held.refusal = refused(503, 'directory_unavailable', 120_000)
    await held.make().start()
    expect(held.hints).toEqual([])
    held.refusal = null
    await held.clock.advance(120_000)
    expect(held.hints).toMatchObject([{ sessionId: null, scope: 'turns' }])
  })

  it('subscribes again when the request for a full read could not be stored', async () => {
    const held = world()
    held.storeFails = true
    const keeper = held.make()
    await keeper.start()
    expect(held.active.at(-1)).toBe(false)
    held.storeFails = false
    await held.clock.advance(30_000)
    expect([keeper.secrets.current, held.hints.length]).toEqual([['secret-2'], 1])
  })

  // [fault webhook-8]
  it.each([
    [
      'inactive',
      (held: ReturnType<typeof world>) =>
        (held.subscriptions = held.subscriptions.map((one) => ({ ...one, active: false }))),
    ],
    ['gone', (held: ReturnType<typeof world>) => (held.subscriptions = [])],
  ])(
    'notices within a sweep that it is %s, creates it again, requests a full read, and keeps the old secret for a while',
    async (_, harm) => {
      const held = world()
      const keeper = held.make()
      await keeper.start()
      harm(held)
      await held.clock.advance(INTERVAL)
      expect(held.subscriptions).toMatchObject([{ id: 'wh_2', active: true }])
      expect(held.hints).toHaveLength(2)
      expect(keeper.secrets.current).toEqual(['secret-2', 'secret-1'])
      expect(held.active).toContain(false)
      expect(held.active.at(-1)).toBe(true)
      await held.clock.advance(13 * 3_600_000)
      expect(keeper.secrets.current).toEqual(['secret-2'])
    },
  )

  it('makes another when a crash came between the subscription and its secret', async () => {
    const held = world()
    const { saveSubscription } = held.store.settings
    held.store.settings.saveSubscription = () => Promise.reject(new StoreError('full'))
    const keeper = held.make()
    await keeper.start()
    expect([keeper.secrets.current, held.active.at(-1)]).toEqual([[], false])
    held.store.settings.saveSubscription = saveSubscription
    await held.clock.advance(30_000)
    expect(held.subscriptions.map(({ id }) => id)).toEqual(['wh_2'])
    expect(keeper.secrets.current).toEqual(['secret-2'])
  })

  it('replaces that of another deployment with its address twice an hour, then leaves and reports it', async () => {
    const held = world()
    const rival = (id: string) => (held.subscriptions = [theirs({ id })])
    rival('wh_rival_1')
    const keeper = held.make()
    await keeper.start()
    for (const id of ['wh_rival_2', 'wh_rival_3', 'wh_rival_4']) {
      rival(id)
      await held.clock.advance(INTERVAL)
    }
    expect(held.calls.filter((call) => call.startsWith('delete'))).toEqual([
      'delete wh_rival_1',
      'delete wh_rival_2',
    ])
    expect(held.active.at(-1)).toBe(false)
    expect(held.log.lines.at(-1)?.message).toContain('give each deployment a webhooks.public_url of its own')
    // An hour after the first one it may try again.
    await held.clock.advance(INTERVAL)
    expect(held.subscriptions.map(({ id }) => id)).toEqual(['wh_3'])
    expect(held.active.at(-1)).toBe(true)
  })

  it('of a process that does not lead reads the secrets again once a second, and waits no longer than its stop', async () => {
    const held = world()
    const shards = { ...held.store.shards, leads: false }
    let reads = 0
    const settings = {
      ...held.store.settings,
      subscriptions: () => {
        reads++
        return held.store.settings.subscriptions()
      },
    }
    const keeper = held.make(URL, { ...held.store, shards, settings })
    await keeper.start()
    expect(await keeper.reload()).toBe(true)
    expect(reads).toBe(2)
    const again = keeper.reload()
    await held.clock.settle()
    expect([reads, held.clock.waiting]).toEqual([2, 1])
    keeper.stop()
    expect(await again).toBe(false)
    expect([reads, held.clock.waiting]).toEqual([2, 0])
  })

  it('waits as long as the service asks after a refusal, and asks nothing while the token is rejected', async () => {
    const held = world()
    held.refusal = refused(503, 'directory_unavailable', 120_000)
    await held.make().start()
    await held.clock.advance(119_000)
    expect(held.calls).toEqual(['list'])
    held.refusal = null
    held.authorized = false
    await held.clock.advance(INTERVAL)
    expect(held.calls).toEqual(['list'])
    held.authorized = true
    await held.clock.advance(INTERVAL)
    expect(held.calls).toEqual(['list', 'list', 'create'])
  })
})
