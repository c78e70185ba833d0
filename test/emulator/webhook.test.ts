import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { receive, type Received } from './receiver.ts'
import { codeOf, messageOf, open, PROFILES, rowsOf, until, type Bench, type ProfileName } from './support.ts'

const nameOf = (profile: ProfileName, { body }: Received): unknown => body[profile === 'a' ? 'type' : 'event']

async function subscribe(bench: Bench, url: string, events: string[] = []): Promise<string> {
  const reply = await bench.call('POST', '/v1/webhooks', { url, events })
  if (reply.status !== 201) throw new Error(reply.text)
  return String(reply.body['secret'])
}

const open_ = (profile: ProfileName, limits = {}) => open(profile, { allowHttpWebhooks: true, limits })

describe.each(PROFILES)('webhooks, profile %s', (profile) => {
  it('WHS-01 WHS-02 WHS-03 WHS-06 WHS-09 WHS-10 WHS-11 WHS-12 WHS-13 shows the secret once, lists and deletes', async () => {
    const bench = await open(profile)
    const made = await bench.call('POST', '/v1/webhooks', {
      url: 'https://app.example.com/hook',
      events: ['turn.completed'],
    })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      object: 'webhook.subscription',
      id: expect.stringMatching(/^whsub_/),
      url: 'https://app.example.com/hook',
      events: ['turn.completed'],
      active: true,
      secret: expect.any(String),
    })
    const { secret, ...shown } = made.body
    const list = await bench.call('GET', '/v1/webhooks')
    expect(rowsOf(list.body)).toEqual([shown])
    expect(list.text).not.toContain(String(secret))
    const gone = await bench.call('DELETE', `/v1/webhooks/${String(made.body['id'])}`)
    expect(gone.body).toEqual({ object: 'webhook.subscription', id: made.body['id'], deleted: true })
    expect((await bench.call('DELETE', `/v1/webhooks/${String(made.body['id'])}`)).status).toBe(404)
  })

  it('WHS-14 WHS-15 ERR-23 a twin is a conflict that names the existing one, whatever the order of its events', async () => {
    const bench = await open(profile)
    const url = 'https://app.example.com/hook'
    const first = await bench.call('POST', '/v1/webhooks', { url, events: ['turn.failed', 'turn.completed'] })
    const twin = await bench.call('POST', '/v1/webhooks', { url, events: ['turn.completed', 'turn.failed'] })
    expect([twin.status, codeOf(twin)]).toEqual([409, 'conflict'])
    expect(messageOf(twin)).toContain(String(first.body['id']))
    expect((await bench.call('POST', '/v1/webhooks', { url, events: ['turn.failed'] })).status).toBe(201)
  })

  it.each(['http://app.example.com/hook', 'ftp://app.example.com', 'hook'])(
    'WHS-03 refuses the address %s',
    async (url) => {
      const bench = await open(profile)
      expect(codeOf(await bench.call('POST', '/v1/webhooks', { url }))).toBe('invalid_request')
      const lax = await open_(profile)
      expect(codeOf(await lax.call('POST', '/v1/webhooks', { url }))).toBe('invalid_request')
    },
  )

  it('WHS-16 WHS-18 WHS-19 WHS-21 WHS-23 WHS-24 WHS-26 WHS-27 WHS-28 WHS-29 WHS-30 WHS-05 tells a whole turn, signed', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url)
    const id = await bench.session({ title: 'secret title' })
    await bench.send(id, 'say hello')
    await until(() => (receiver.received.length === 4 ? true : undefined))
    const names = receiver.received.map((one) => String(nameOf(profile, one)))
    expect(names.toSorted()).toEqual(['session.created', 'session.idle', 'session.working', 'turn.completed'])
    const [turn] = await bench.turns(id)
    for (const one of receiver.received) {
      const timestamp = String(one.headers['x-service-timestamp'])
      expect(timestamp).toMatch(/^\d{13}$/)
      const signature = createHmac('sha256', secret).update(`${timestamp}.${one.raw}`).digest('hex')
      expect(one.headers['x-service-signature']).toBe(signature)
      expect(one.raw).not.toContain('secret title')
      const data = one.body['data'] as Record<string, unknown>
      expect(Object.values(data)).toContain(id)
      expect(Object.values(data).includes(turn?.['id'])).toBe(nameOf(profile, one) === 'turn.completed')
    }
  })

  it('WHS-17 WHS-20 WHS-22 WHS-04 tells only what a subscription named', async () => {
    const bench = await open_(profile)
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

  it('WHS-37 LIM-29 turn.completed waits for the artifacts, at most thirty seconds', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    await subscribe(bench, receiver.url, ['turn.completed'])
    const id = await bench.session()
    await bench.send(id, 'collect 45s\nwrite outputs/a.txt hi')
    await bench.reach(id, 'idle')
    await bench.emulator.advance(29_000)
    expect(receiver.received).toHaveLength(0)
    await bench.emulator.advance(1000)
    await until(() => (receiver.received.length === 1 ? true : undefined))
    expect((await bench.turns(id))[0]?.['artifacts']).toBe('pending')
    await bench.emulator.advance(15_000)
    expect((await bench.turns(id))[0]?.['artifacts']).toBe('ready')
    expect(bench.emulator.ledger().deliveries).toHaveLength(1)
  })

  it('LIM-28 STA-39 STA-40 STA-42 STA-43 WHS-08 tries six times over about nine hours, then gives up', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    receiver.answer = 302
    await subscribe(bench, receiver.url, ['session.created'])
    const deaths = profile === 'a' ? 1 : 3
    for (let n = 0; n < deaths; n++) await bench.session()
    await until(() => (receiver.received.length === deaths ? true : undefined))
    await bench.emulator.advance(10 * 3_600_000)
    const { deliveries, subscriptions } = bench.emulator.ledger()
    expect(deliveries.map(({ status, attempts }) => [status, attempts.length])).toEqual(
      Array.from({ length: deaths }, () => ['dead', 6]),
    )
    expect(deliveries[0]?.reason).toBe('6 attempts failed, the last: status 302')
    const hours = (Number(deliveries[0]?.attempts.at(-1)?.at) - Number(deliveries[0]?.created_at)) / 3_600_000
    expect(hours).toBeGreaterThan(8.5)
    expect(hours).toBeLessThan(9.5)
    expect(subscriptions[0]?.active).toBe(false)
    expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)[0]?.['active']).toBe(false)
    await bench.session()
    expect(bench.emulator.ledger().deliveries).toHaveLength(deaths)
  })

  it('LIM-27 STA-41 abandons a receiver that takes more than ten seconds and tries again', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    receiver.answer = null
    await subscribe(bench, receiver.url, ['session.created'])
    await bench.session()
    await until(() => (receiver.received.length === 1 ? true : undefined))
    await bench.emulator.advance(9_900)
    expect(bench.emulator.ledger().deliveries[0]?.attempts).toEqual([])
    receiver.answer = 204
    await bench.emulator.advance(200)
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    await bench.emulator.advance(5000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    const [first, second] = bench.emulator.ledger().deliveries[0]?.attempts ?? []
    expect([first?.error, second?.status]).toEqual(['no answer in time', 204])
    const [one, two] = receiver.received
    expect(two?.raw).toBe(one?.raw)
    expect(two?.headers['x-service-timestamp']).not.toBe(one?.headers['x-service-timestamp'])
  })

  it('WHS-34 WHS-35 the faults duplicate, reorder, delay, forge and withhold deliveries', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    const secret = await subscribe(bench, receiver.url, ['session.created'])
    const sent = async (): Promise<unknown> => {
      const before = receiver.received.length
      return until(() => (receiver.received.length > before ? true : undefined))
    }
    bench.emulator.faults.set({ duplicate_webhooks: 2 })
    await bench.session()
    await until(() => (receiver.received.length === 3 ? true : undefined))
    expect(new Set(receiver.received.map(({ raw }) => raw)).size).toBe(1)

    bench.emulator.faults.set({ reorder_webhooks: true })
    const early = await bench.session()
    const late = await bench.session()
    await until(() => (receiver.received.length === 5 ? true : undefined))
    expect(
      receiver.received
        .slice(3)
        .map(({ raw }) => (raw.includes(late) ? 'late' : raw.includes(early) ? 'early' : '')),
    ).toEqual(['late', 'early'])

    bench.emulator.faults.set({ delay_webhooks: '1m' })
    await bench.session()
    await bench.emulator.advance(59_000)
    expect(receiver.received).toHaveLength(5)
    await Promise.all([sent(), bench.emulator.advance(1000)])

    bench.emulator.faults.set({ forge_webhooks: true })
    await Promise.all([sent(), bench.session()])
    const forged = receiver.received.at(-1)
    const genuine = createHmac('sha256', secret)
      .update(`${String(forged?.headers['x-service-timestamp'])}.${forged?.raw}`)
      .digest('hex')
    expect(forged?.headers['x-service-signature']).not.toBe(genuine)

    bench.emulator.faults.set({ webhooks_off: true })
    await bench.session()
    await bench.emulator.advance(60_000)
    const count = receiver.received.length
    expect(bench.emulator.ledger().deliveries.at(-1)).toMatchObject({ status: 'owed', attempts: [] })
    bench.emulator.faults.set({})
    await until(() => (receiver.received.length === count + 1 ? true : undefined))
  })

  it('what a deleted subscription was owed is dropped', async () => {
    const bench = await open_(profile)
    const receiver = await receive()
    receiver.answer = 500
    await subscribe(bench, receiver.url)
    await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    await bench.call('DELETE', `/v1/webhooks/${bench.emulator.ledger().subscriptions[0]?.id}`)
    await bench.emulator.advance(10 * 3_600_000)
    expect(receiver.received).toHaveLength(1)
    expect(bench.emulator.ledger().deliveries[0]?.status).toBe('dead')
  })
})
