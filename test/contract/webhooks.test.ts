import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Limits } from '../../src/emulator/index.ts'
import { descriptionOf } from '../emulator/described.ts'
import { receive, type Received } from '../emulator/receiver.ts'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  until,
  type Bench,
  type Fields,
  type ProfileName,
} from '../emulator/support.ts'

const URL = 'https://app.example.com/hook'

const nameOf = (profile: ProfileName, { body }: Received): unknown => body[profile === 'a' ? 'type' : 'event']

const openLax = (profile: ProfileName, limits: Partial<Limits> = {}) =>
  open(profile, { allowHttpWebhooks: true, limits })

async function subscribe(bench: Bench, url: string, events: string[] = []): Promise<string> {
  const reply = await bench.call('POST', '/v1/webhooks', { url, events })
  if (reply.status !== 201) throw new Error(reply.text)
  return String(reply.body['secret'])
}

function sign(secret: string, timestamp: unknown, raw: string): string {
  return createHmac('sha256', secret)
    .update(`${String(timestamp)}.${raw}`)
    .digest('hex')
}

function isGenuine(secret: string, { headers, raw }: Received): boolean {
  return headers['x-service-signature'] === sign(secret, headers['x-service-timestamp'], raw)
}

describe.each(PROFILES)('webhooks, profile %s', (profile) => {
  it('WHS-01 WHS-02 WHS-03 WHS-04 WHS-06 WHS-07 WHS-09 creates a subscription and shows its secret then only', async () => {
    const bench = await open(profile)
    const made = await bench.call('POST', '/v1/webhooks', { url: URL, events: ['turn.completed'] })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      object: 'webhook.subscription',
      id: expect.stringMatching(/^whsub_/),
      url: URL,
      events: ['turn.completed'],
      active: true,
      secret: expect.stringMatching(/.{16}/),
    })
    const again = await bench.call('POST', '/v1/webhooks', { url: URL, events: ['turn.failed'] })
    expect(again.body['secret']).not.toBe(made.body['secret'])
    for (const events of [['turn.exploded'], 'turn.failed', [7]])
      expect(codeOf(await bench.call('POST', '/v1/webhooks', { url: URL, events }))).toBe('invalid_request')
  })

  it('WHS-10 WHS-11 lists the subscriptions without their secrets', async () => {
    const bench = await open(profile)
    const made = await bench.call('POST', '/v1/webhooks', { url: URL, events: ['turn.completed'] })
    const { secret, ...shown } = made.body
    const list = await bench.call('GET', '/v1/webhooks')
    expect(rowsOf(list.body)).toEqual([shown])
    expect(list.text).not.toContain(String(secret))
  })

  it('WHS-12 WHS-13 deletes a subscription, with its pending deliveries', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    receiver.answer = 500
    await subscribe(bench, receiver.url)
    await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    const id = String(bench.emulator.ledger().subscriptions[0]?.id)
    const gone = await bench.call('DELETE', `/v1/webhooks/${id}`)
    expect([gone.status, gone.body]).toEqual([200, { object: 'webhook.subscription', id, deleted: true }])
    expect((await bench.call('DELETE', `/v1/webhooks/${id}`)).status).toBe(404)
    expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)).toEqual([])
    await bench.emulator.advance(10 * 3_600_000)
    expect(receiver.received).toHaveLength(1)
    expect(bench.emulator.ledger().deliveries[0]?.status).toBe('dead')
  })

  it('WHS-14 WHS-15 a twin is a conflict that names the existing one, whatever the order of its events', async () => {
    const bench = await open(profile)
    const first = await bench.call('POST', '/v1/webhooks', {
      url: URL,
      events: ['turn.failed', 'turn.completed'],
    })
    const twin = await bench.call('POST', '/v1/webhooks', {
      url: URL,
      events: ['turn.completed', 'turn.failed'],
    })
    expect([twin.status, codeOf(twin)]).toEqual([409, 'conflict'])
    expect(messageOf(twin)).toContain(String(first.body['id']))
    for (const events of [['turn.failed'], [], ['turn.failed', 'turn.completed', 'session.idle']])
      expect((await bench.call('POST', '/v1/webhooks', { url: URL, events })).status).toBe(201)
    const elsewhere = { url: `${URL}/2`, events: ['turn.failed', 'turn.completed'] }
    expect((await bench.call('POST', '/v1/webhooks', elsewhere)).status).toBe(201)
  })

  it.each(['http://app.example.com/hook', 'ftp://app.example.com', 'hook', ''])(
    'WHS-03 refuses the address "%s"',
    async (url) => {
      for (const bench of [await open(profile), await openLax(profile)])
        expect(codeOf(await bench.call('POST', '/v1/webhooks', { url }))).toBe('invalid_request')
    },
  )

  it('WHS-03 accepts http on loopback only if it is allowed', async () => {
    const url = 'http://127.0.0.1:9/hook'
    expect((await (await open(profile)).call('POST', '/v1/webhooks', { url })).status).toBe(400)
    expect((await (await openLax(profile)).call('POST', '/v1/webhooks', { url })).status).toBe(201)
  })

  it('WHS-05 WHS-16 WHS-17 WHS-18 WHS-19 WHS-20 WHS-21 WHS-22 without events named, all seven are sent', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url)
    const id = await bench.session()
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.settle(id)
    await bench.send(id, 'fail')
    await bench.reach(id, 'failed')
    const names = await until(() => {
      const heard = new Set(receiver.received.map((one) => nameOf(profile, one)))
      return heard.size === 7 ? heard : undefined
    })
    expect([...names].map(String).toSorted()).toEqual([
      'session.action_required',
      'session.created',
      'session.failed',
      'session.idle',
      'session.working',
      'turn.completed',
      'turn.failed',
    ])
  })

  it('WHS-04 sends only the events of a subscription', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url, ['session.action_required', 'turn.failed', 'session.failed'])
    const id = await bench.session()
    await bench.send(id, 'call f {} & call g {}\nfail')
    for (const action of await bench.actions(id))
      await bench.answer(id, { call_id: action['call_id'], output: '' })
    await until(() => (receiver.received.length === 3 ? true : undefined))
    const names = receiver.received.map((one) => String(nameOf(profile, one)))
    expect(names.toSorted()).toEqual(['session.action_required', 'session.failed', 'turn.failed'])
  })

  it('WHS-23 WHS-24 WHS-25 names the object by its ids in the envelope of the profile and embeds none of it', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url)
    const id = await bench.session({ title: 'secret title', metadata: { secret: 'value' } })
    await bench.send(id, 'say hello')
    await until(() => (receiver.received.length === 4 ? true : undefined))
    const [turn] = await bench.turns(id)
    const description = await descriptionOf(profile)
    const fields =
      profile === 'a'
        ? ['id', 'object', 'type', 'created_at']
        : ['delivery', 'event', 'occurred_at', 'api_version']
    for (const one of receiver.received) {
      expect(description.fits('WebhookDelivery', one.body)).toEqual([])
      expect(Object.keys(one.body)).toEqual([...fields, 'data'])
      const data = one.body['data'] as Fields
      const ids =
        profile === 'a' ? data : { session_id: data['session_id'] ?? data['id'], turn_id: data['id'] }
      const ofTurn = nameOf(profile, one) === 'turn.completed'
      expect(ids).toMatchObject({ session_id: id, ...(ofTurn ? { turn_id: turn?.['id'] } : {}) })
      expect(Object.values(data).includes(turn?.['id'])).toBe(ofTurn)
      expect(one.raw).not.toMatch(/secret|hello|status/)
    }
    expect((await bench.read(id))['title']).toBe('secret title')
  })

  it('WHS-26 WHS-27 WHS-28 WHS-29 WHS-30 signs the digits of the timestamp, a dot and the raw body', async () => {
    const startAt = 1_900_000_000_000
    const bench = await open(profile, { allowHttpWebhooks: true, startAt })
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url)
    await bench.session()
    const one = await until(() => receiver.received[0])
    const timestamp = String(one.headers['x-service-timestamp'])
    expect(timestamp).toMatch(/^\d{13}$/)
    expect(Number(timestamp) - startAt).toBeLessThan(60_000)
    expect(one.headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
    expect(one.headers['x-service-signature']).toBe(sign(secret, timestamp, one.raw))
  })

  it('WHS-31 the signature is of the raw bytes: the same JSON written otherwise does not have it', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url)
    await bench.session()
    const one = await until(() => receiver.received[0])
    expect(isGenuine(secret, one)).toBe(true)
    expect(isGenuine(secret, { ...one, raw: JSON.stringify(one.body, null, 1) })).toBe(false)
    bench.emulator.faults.set({ forge_webhooks: true })
    await bench.session()
    const forged = await until(() => receiver.received[1])
    // It parses like any other: only the signature is wrong.
    expect(Object.keys(forged.body)).toEqual(Object.keys(one.body))
    expect(isGenuine(secret, forged)).toBe(false)
  })

  it('WHS-32 a timestamp that was converted to seconds no longer fits its signature', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url)
    await bench.session()
    const one = await until(() => receiver.received[0])
    const timestamp = String(one.headers['x-service-timestamp'])
    for (const changed of [Math.floor(Number(timestamp) / 1000), Number(timestamp) / 1000, `0${timestamp}`])
      expect(sign(secret, changed, one.raw)).not.toBe(one.headers['x-service-signature'])
  })

  it('WHS-33 a delivery replayed with a clock far off is signed as well as any, so the timestamp has to be judged', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url)
    bench.emulator.faults.set({ clock_skew_ms: -3_600_000 })
    await bench.session()
    const one = await until(() => receiver.received[0])
    expect(isGenuine(secret, one)).toBe(true)
    const age = bench.emulator.now() - Number(one.headers['x-service-timestamp'])
    expect(Math.abs(age - 3_600_000)).toBeLessThan(60_000)
  })

  it('WHS-34 WHS-36 the same delivery comes twice: when the receiver took it and could not say so, or for no reason', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url, ['session.created'])
    receiver.answer = 500
    await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    receiver.answer = 200
    await bench.emulator.advance(5000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    const [one, two] = receiver.received
    expect(two?.raw).toBe(one?.raw)
    expect(two?.headers['x-service-timestamp']).not.toBe(one?.headers['x-service-timestamp'])
    bench.emulator.faults.set({ duplicate_webhooks: 2 })
    await bench.session()
    await until(() => (receiver.received.length === 5 ? true : undefined))
    expect(new Set(receiver.received.slice(2).map(({ raw }) => raw)).size).toBe(1)
  })

  it('WHS-35 deliveries arrive out of order: one that failed first comes after what happened later', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url, ['session.created'])
    receiver.answer = 503
    const early = await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    receiver.answer = 200
    const late = await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[1]?.status === 'delivered' ? true : undefined))
    await bench.emulator.advance(5000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    const order = receiver.received.slice(1).map(({ raw }) => [early, late].find((id) => raw.includes(id)))
    expect(order).toEqual([late, early])
  })

  it('WHS-37 turn.completed is sent once the artifacts are published, so that they can be fetched', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url, ['turn.completed'])
    const id = await bench.session()
    await bench.send(id, 'collect 20s\nwrite outputs/a.txt hi')
    await bench.reach(id, 'idle')
    await bench.emulator.advance(15_000)
    expect([(await bench.turns(id))[0]?.['artifacts'], receiver.received]).toEqual(['pending', []])
    await bench.emulator.advance(5000)
    await until(() => (receiver.received.length === 1 ? true : undefined))
    expect((await bench.turns(id))[0]?.['artifacts']).toBe('ready')
    expect(rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)).toHaveLength(1)
  })

  it('WHS-08 deliveries that were given up make a subscription inactive: one, or three in a row, as the profile has it', async () => {
    const bench = await openLax(profile)
    const receiver = await receive()
    receiver.answer = 302
    await subscribe(bench, receiver.url, ['session.created'])
    const deaths = profile === 'a' ? 1 : 3
    for (let n = 0; n < deaths; n++) {
      expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)[0]?.['active']).toBe(true)
      await bench.session()
      await until(() => (receiver.received.length === 6 * n + 1 ? true : undefined))
      await bench.emulator.advance(10 * 3_600_000)
      await until(() => (bench.emulator.ledger().deliveries[n]?.status === 'dead' ? true : undefined))
    }
    expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)[0]?.['active']).toBe(false)
    await bench.session()
    expect(bench.emulator.ledger().deliveries).toHaveLength(deaths)
  })
})
