import { createHmac } from 'node:crypto'
import { request } from 'undici'
import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

/** Longer than the six attempts of a delivery take. */
const HOURS = 12
const SECRET = 'made-elsewhere'

describe.for(PROFILES)('webhooks (%s)', (details) => {
  // [fault webhook-2] [fault state-3]
  test('duplicated, reordered and delayed deliveries change nothing', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'], tools: { lookup_order: {} } })
    const { client, emulator, app } = rig
    for (const faults of [
      { duplicate_webhooks: 5 },
      { reorder_webhooks: true },
      { delay_webhooks: '30ms', duplicate_webhooks: 2 },
    ]) {
      emulator.faults.set(faults)
      await client.start('say Hello', 'call lookup_order {"order_id":"42"}', 'say {{last}}')
      await client.start('fail no')
    }
    emulator.faults.set({})
    await assertWhole(rig, { tools: ['lookup_order'], transcript: false })
    const ids = app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('the subscription is made once, and kept over a restart', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'] })
    const [first] = rig.emulator.ledger().subscriptions
    expect(first?.url).toBe(rig.config.webhooks?.public_url)
    await rig.stop()
    await rig.start()
    expect(rig.emulator.ledger().subscriptions).toEqual([first])
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
  })

  test('a token that may not manage webhooks is shown by status and metric', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook', 'poll'], start: false })
    const body = JSON.stringify({ error: { code: 'forbidden', message: 'not allowed', request_id: 'req_1' } })
    rig.gateway.intercept = ({ url }) => (url?.startsWith('/v1/webhooks') ? { status: 403, body } : undefined)
    await rig.start()
    const channel = await until('a channel that waits', async () => {
      const status = await rig.channel('webhook')
      return status['state'] === 'waiting' ? status : undefined
    })
    expect(channel['last_error']).toContain('not allowed')
    const { body: metrics } = await rig.raw('GET', '/metrics')
    expect(metrics['text']).toContain('session_sidecar_webhook_subscription_active 0\n')
  })

  test('the subscription is deleted when webhooks are turned off, and created again when they are on', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook', 'poll'] })
    const subscribed = () => rig.emulator.ledger().subscriptions.length
    expect(subscribed()).toBe(1)
    await rig.stop()
    const { webhooks = {} } = rig.config
    rig.config = { ...rig.config, webhooks: { enabled: false } }
    await rig.start()
    await until('no subscription', () => subscribed() === 0)
    await rig.stop()
    rig.config = { ...rig.config, webhooks }
    await rig.start()
    await until('a subscription', () => subscribed() === 1)
    await rig.client.start('say Hello')
    // Polling may well be the first to see the turn: what the sidecar took is in the service's own book.
    await until('a delivery that was taken', () =>
      rig.emulator.ledger().deliveries.some(({ attempts }) => attempts.some(({ status }) => status === 200)),
    )
  })

  test('another query of public_url replaces the subscription, and with it the secret', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook', 'poll'] })
    const url = `${rig.config.webhooks?.public_url}?2`
    await rig.stop()
    rig.config = { ...rig.config, webhooks: { ...rig.config.webhooks, public_url: url } }
    await rig.start()
    await until('one subscription', () => rig.emulator.ledger().subscriptions.length === 1)
    expect(rig.emulator.ledger().subscriptions).toMatchObject([{ url, active: true }])
    await rig.client.start('say Hello')
    await until('a delivery that was taken', () =>
      rig.emulator.ledger().deliveries.some(({ attempts }) => attempts.some(({ status }) => status === 200)),
    )
  })

  // [fault webhook-8]
  test('a subscription that the service gave up is created again, and missed events are delivered', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'] })
    const { client, emulator } = rig
    const [first] = emulator.ledger().subscriptions
    await client.start('say before')
    await rig.event('turn.settled')
    // The signature is wrong, so every attempt is refused until the service gives up.
    emulator.faults.set({ forge_webhooks: true })
    for (let turn = 0; turn < 3; turn++) await client.start(`say unheard ${turn}`)
    await until(
      'unheard turns',
      () => emulator.ledger().turns.filter(({ artifacts }) => artifacts === 'ready').length === 4,
    )
    await until(
      'refused deliveries',
      () =>
        emulator.ledger().deliveries.filter(({ attempts }) => attempts.some(({ status }) => status === 401))
          .length >= 4,
    )
    for (let hour = 0; hour < HOURS; hour++) await emulator.advance(3_600_000)
    // The sidecar may have replaced it already.
    await until(
      'inactive subscription',
      () => !emulator.ledger().subscriptions.some(({ id, active }) => active && id === first?.id),
    )
    // The service's clock ran ahead; what it signs is timed as if it had not.
    emulator.faults.set({ clock_skew_ms: -HOURS * 3_600_000 })
    await until('new subscription', () =>
      emulator.ledger().subscriptions.some(({ id, active }) => active && id !== first?.id),
    )
    expect(emulator.ledger().subscriptions).toHaveLength(1)
    await client.start('say after')
    await assertWhole(rig, { transcript: false })
  })

  // [fault webhook-7]
  test('a subscription whose secret was lost is replaced', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'], start: false })
    await rig.client.call('POST', '/v1/webhooks', { url: rig.config.webhooks?.public_url, events: [] })
    const [stranger] = rig.emulator.ledger().subscriptions
    await rig.start()
    const now = rig.emulator.ledger().subscriptions
    expect(now).toHaveLength(1)
    expect(now[0]?.id).not.toBe(stranger?.id)
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
  })
})

describe.for(PROFILES)('deliveries (%s)', (details) => {
  // [fault webhook-3] [fault webhook-4]
  test('forged, stale, truncated and wrongly timed deliveries are refused; several secrets are accepted', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'], start: false })
    const { listen = '', public_url, ...webhooks } = rig.config.webhooks ?? {}
    expect(public_url).toBeDefined()
    rig.config = { ...rig.config, webhooks: { ...webhooks, listen, secrets: ['next-one', SECRET] } }
    await rig.start()
    const session = await rig.client.start('say Hello')
    await rig.client.reached(session, 'idle')
    const body = JSON.stringify({ type: 'session.idle', data: { session_id: session } })
    const post = async (given: {
      signature?: string
      timestamp?: string
      body?: string
      method?: string
      path?: string
    }) => {
      const timestamp = given.timestamp ?? String(Date.now())
      const response = await request(`http://${listen}${given.path ?? '/webhooks'}`, {
        method: (given.method ?? 'POST') as 'POST',
        headers: {
          'content-type': 'application/json',
          'x-service-timestamp': timestamp,
          'x-service-signature': given.signature ?? sign(SECRET, timestamp, body),
        },
        body: given.body ?? body,
      })
      await response.body.dump()
      return response.statusCode
    }
    const now = String(Date.now())
    const good = sign(SECRET, now, body)
    expect(await post({ signature: sign('wrong', now, body), timestamp: now })).toBe(401)
    expect(await post({ signature: good.slice(0, 63), timestamp: now })).toBe(401)
    expect(await post({ signature: good.toUpperCase(), timestamp: now })).toBe(401)
    expect(await post({ signature: good + good, timestamp: now })).toBe(401)
    expect(await post({ signature: `${good.slice(0, 63)}z`, timestamp: now })).toBe(401)
    expect(await post({ body: `${body} `, signature: good, timestamp: now })).toBe(401)
    expect(await post({ timestamp: String(Date.now() - 360_000) })).toBe(401)
    expect(await post({ timestamp: String(Date.now() + 360_000) })).toBe(401)
    expect(await post({ timestamp: String(Math.floor(Date.now() / 1000)) })).toBe(401)
    expect(await post({ path: '/elsewhere' })).toBe(404)
    expect(await post({ method: 'PUT' })).toBe(405)
    expect(await post({ body: 'x'.repeat(1024 * 1024 + 1) })).toBe(413)
    expect(rig.app.callbacks).toEqual([])
    expect(await post({})).toBe(200)
    await rig.event('turn.settled')
    const other = String(Date.now())
    expect(await post({ timestamp: other, signature: sign('next-one', other, body) })).toBe(200)
  })

  test('a genuine delivery that cannot be parsed causes a sweep', async () => {
    await using rig = await Rig.open({ details, channels: ['webhook'], start: false })
    const { listen = '', public_url, ...webhooks } = rig.config.webhooks ?? {}
    expect(public_url).toBeDefined()
    rig.config = { ...rig.config, webhooks: { ...webhooks, listen, secrets: [SECRET] } }
    await rig.start()
    const session = await rig.client.start('say Hello')
    await rig.client.reached(session, 'idle')
    expect(rig.app.callbacks).toEqual([])
    const timestamp = String(Date.now())
    const body = 'this is not JSON'
    const response = await request(`http://${listen}/webhooks`, {
      method: 'POST',
      headers: { 'x-service-timestamp': timestamp, 'x-service-signature': sign(SECRET, timestamp, body) },
      body,
    })
    await response.body.dump()
    expect(response.statusCode).toBe(200)
    await rig.event('turn.settled')
  })
})

function sign(secret: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
}
