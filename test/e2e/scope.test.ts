import { describe, expect, test } from 'vitest'
import { Client } from '../support/client.ts'
import { assertWhole } from '../support/oracle.ts'
import { ALL_CHANNELS, Rig, type ChannelName, type RigOptions } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { PROFILES } from './engines.ts'

const CALL = 'call lookup_order {"order_id":"42"}'
const BILLING = { metadata: { app: 'billing' } }
const SUPPORT = { metadata: { app: 'support' } }

/** Requests of a sidecar that name one of these sessions, without those of the list. */
function asked(rig: Rig, ids: readonly string[]): string[] {
  return rig.gateway.passed
    .map(({ method, path }) => `${method} ${path}`)
    .filter((line) => ids.some((id) => line.includes(id)))
}

/** Two sidecars in one organization, with a tool of the same name and a scope each. */
async function openPair(options: RigOptions): Promise<AsyncDisposable & { billing: Rig; support: Rig }> {
  await using stack = new AsyncDisposableStack()
  const tools = { lookup_order: {} }
  const billing = stack.use(await Rig.open({ tools, ...options, config: { scope: BILLING } }))
  const support = stack.use(
    await Rig.open({ tools, ...options, config: { scope: SUPPORT }, beside: billing }),
  )
  const held = stack.move()
  return { billing, support, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const runsOf = (rig: Rig) => rig.app.runs.map(({ call }) => call.session_id)
const deliveredTo = (rig: Rig) => new Set(rig.app.seen().map(({ session_id: id }) => id))

describe.for(PROFILES)('two sidecars in one organization (%s)', (details) => {
  // What one session of the other sidecar may cost, in requests beside those of the list.
  const each: [string, readonly ChannelName[], number][] = [
    ['all channels', ALL_CHANNELS, 1],
    ['the stream', ['stream'], 1],
    ['webhooks', ['webhook'], 1],
    ['polling', ['poll'], 0],
  ]
  test.for(each)('each delivers and runs only its own, by %s', async ([, channels, most]) => {
    await using pair = await openPair({ details, channels })
    const { billing, support } = pair
    for (const [rig, name] of [
      [billing, 'bill'],
      [support, 'support'],
    ] as const)
      rig.app.run = () => ({ body: `said by ${name}` })
    const { client } = billing
    const ours: string[] = []
    const theirs: string[] = []
    for (let n = 0; n < 6; n++) {
      const id = await client.create(n % 2 === 0 ? BILLING : SUPPORT)
      ;(n % 2 === 0 ? ours : theirs).push(id)
      await client.send(id, 'say Hello', CALL, 'say {{last}}')
    }
    const transcript = channels.includes('stream')
    await assertWhole(billing, { tools: ['lookup_order'], except: theirs, transcript })
    await assertWhole(support, { tools: ['lookup_order'], except: ours, transcript })
    expect(new Set(runsOf(billing))).toEqual(new Set(ours))
    expect(new Set(runsOf(support))).toEqual(new Set(theirs))
    expect([...deliveredTo(billing)].filter((id) => theirs.includes(String(id)))).toEqual([])
    expect([...deliveredTo(support)].filter((id) => ours.includes(String(id)))).toEqual([])
    const answers = billing.emulator.ledger().answers.map(({ output }) => output)
    expect(answers.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual([
      ...Array(3).fill('said by bill'),
      ...Array(3).fill('said by support'),
    ])
    // One read shows the owner of a session; without a hint, the list does.
    for (const [rig, others] of [
      [billing, theirs],
      [support, ours],
    ] as const) {
      const requests = asked(rig, others)
      expect(requests.every((line) => others.some((id) => line === `GET /v1/sessions/${id}`))).toBe(true)
      expect(new Set(requests).size).toBe(requests.length)
      expect(requests.length).toBeLessThanOrEqual(others.length * most)
      expect(await rig.list('/api/sessions')).toHaveLength(3)
      expect(await rig.list('/api/calls')).toHaveLength(3)
    }
  })
})

describe('a scope', () => {
  test('by token takes the sessions that one of its tokens created', async () => {
    await using rig = await Rig.open({ start: false })
    const other = new Client(rig.emulator, 'a')
    rig.config = { ...rig.config, scope: { created_by_token: [rig.client.token.id, 'tok_retired'] } }
    await rig.start()
    const theirs = await other.start('say Hello')
    const ours = await rig.client.start('say Hello')
    await assertWhole(rig, { except: [theirs] })
    expect(deliveredTo(rig)).toEqual(new Set([ours]))
  })

  test('passes on the transient events of its own sessions alone', async () => {
    await using rig = await Rig.open({
      channels: ['stream'],
      handler: { events: ['*', 'agent.text'] },
      config: { scope: BILLING },
    })
    const theirs = await rig.client.create(SUPPORT)
    await rig.client.send(theirs, 'say Hello', 'say again')
    const ours = await rig.client.create(BILLING)
    await rig.client.send(ours, 'say Hello')
    await rig.event('turn.settled', ({ session_id: id }) => id === ours)
    await rig.client.reached(theirs, 'idle')
    await rig.client.send(ours, 'say Hello')
    await until('transient events of ours', () => rig.app.seen().some(({ type }) => type === 'agent.text'))
    expect(deliveredTo(rig)).toEqual(new Set([ours]))
  })

  test('delays the frames of a session until it can be read, and then delivers them in order', async () => {
    await using rig = await Rig.open({ channels: ['stream'], config: { scope: BILLING } })
    let refused = 0
    rig.gateway.intercept = ({ url }) => {
      if (url?.startsWith('/v1/sessions') !== true) return undefined
      refused++
      return {
        status: 500,
        body: JSON.stringify({ error: { code: 'internal_error', message: 'no', request_id: 'r' } }),
      }
    }
    const ours = await rig.client.create(BILLING)
    await rig.client.send(ours, 'say one', 'say two')
    const theirs = await rig.client.create(SUPPORT)
    await rig.client.send(theirs, 'say three')
    await rig.client.reached(ours, 'idle')
    await rig.client.reached(theirs, 'idle')
    const held = await until('held frames', async () => {
      const { body } = await rig.raw('GET', '/metrics')
      const count = Number(/^session_sidecar_stream_frames_held (\d+)$/m.exec(String(body['text']))?.[1])
      return count === rig.emulator.ledger().events.length ? count : undefined
    })
    expect(held).toBeGreaterThan(6)
    await until('a reading that is refused', () => refused > 0)
    expect(rig.app.seen()).toEqual([])
    // They are on disk: a kill loses none of them.
    await rig.stop()
    rig.gateway.intercept = () => undefined
    await rig.start()
    await assertWhole(rig, { except: [theirs] })
    expect(deliveredTo(rig)).toEqual(new Set([ours]))
    // A scrape may show counts that are seconds old.
    await until('a scrape without held frames', async () => {
      const { body } = await rig.raw('GET', '/metrics')
      return String(body['text']).includes('session_sidecar_stream_frames_held 0\n')
    })
  })

  test('follows a session that a PATCH moves into it, from then on', async () => {
    await using rig = await Rig.open({ config: { scope: BILLING }, tools: { lookup_order: {} } })
    const { client } = rig
    const id = await client.create(SUPPORT)
    await client.send(id, 'say before', CALL)
    const [call] = await client.required(id)
    await client.answer(id, String(call?.call_id), 'by the other')
    await client.reached(id, 'idle')
    const metric = async () => String((await rig.raw('GET', '/metrics')).body['text'])
    await until('a foreign session', async () => (await metric()).includes('sidecar_sessions_foreign 1\n'))
    await client.call('PATCH', `/v1/sessions/${id}`, BILLING)
    await until('a session of ours', async () => (await rig.list('/api/sessions')).length === 1)
    expect(rig.app.seen().filter(({ type }) => !type.startsWith('session'))).toEqual([])
    const before = rig.emulator.ledger().turns.map((turn) => turn.id)
    await client.send(id, 'say after', CALL)
    const settled = await rig.event('turn.settled')
    expect(before).not.toContain(settled.data.turn?.id)
    expect(runsOf(rig)).toEqual([id])
    const texts = rig.app.seen().flatMap(({ type, data }) => (type === 'agent.message' ? [data.payload] : []))
    expect(texts).toHaveLength(1)
  })

  test('drops a session that a PATCH moves out of it, and still delivers pending facts', async () => {
    await using rig = await Rig.open({ config: { scope: BILLING }, tools: { lookup_order: {} } })
    const { client, app } = rig
    const id = await client.create(BILLING)
    await client.send(id, 'say before')
    const before = await rig.event('turn.settled')
    await rig.admin('POST', '/api/handlers/app/pause')
    await client.send(id, 'say pending')
    // The delivery of the first turn may still be listed: its answer is stored a moment after it came.
    await until('pending facts', async () =>
      (await rig.list('/api/deliveries?status=pending')).some(
        ({ type, fact_id: fact }) => type === 'turn.settled' && fact !== before.id,
      ),
    )
    await client.call('PATCH', `/v1/sessions/${id}`, SUPPORT)
    await until('a foreign session', async () =>
      String((await rig.raw('GET', '/metrics')).body['text']).includes('sidecar_sessions_foreign 1\n'),
    )
    await client.send(id, CALL)
    const [call] = await client.required(id)
    await client.answer(id, String(call?.call_id), 'by the other')
    await client.reached(id, 'idle')
    await rig.admin('POST', '/api/handlers/app/resume')
    await until(
      'the pending turn',
      () => app.delivered().filter(({ type }) => type === 'turn.settled').length === 2,
    )
    expect(app.delivered().every(({ data }) => data.session?.metadata !== undefined)).toBe(true)
    expect(app.runs).toEqual([])
    expect(app.seen().filter(({ type }) => type === 'turn.started')).toHaveLength(2)
  })

  test('that changed before a restart selects sessions again, without a flood of old facts', async () => {
    await using rig = await Rig.open({ config: { scope: BILLING } })
    const { client } = rig
    const bill = await client.create(BILLING)
    const support = await client.create(SUPPORT)
    for (const id of [bill, support]) await client.send(id, 'say one')
    for (const id of [bill, support]) await client.reached(id, 'idle')
    await assertWhole(rig, { except: [support] })
    const stateOf = (id: string) => rig.app.seen().filter((event) => event.session_id === id)
    const before = stateOf(bill).length
    for (const [scope, deliveredSince] of [
      [SUPPORT, 0],
      [{}, 1],
    ] as const) {
      await rig.stop()
      rig.config = { ...rig.config, scope }
      await rig.start()
      const mine = scope === SUPPORT ? [support] : [bill, support]
      await until('its sessions', async () => {
        const listed = (await rig.list('/api/sessions')).map(({ id }) => id)
        return listed.length === mine.length && mine.every((id) => listed.includes(id))
      })
      await client.send(support, 'say two')
      await client.send(bill, 'say two')
      for (const id of mine)
        await rig.event('turn.settled', (event) => event.session_id === id && isNew(rig, event))
      expect(Math.sign(stateOf(bill).length - before)).toBe(deliveredSince)
    }
    const [first] = rig.emulator.ledger().turns.filter(({ session_id }) => session_id === support)
    expect(rig.app.seen().filter(({ data }) => data.turn?.id === first?.id)).toEqual([])
  })
})

/** Of the last turn of its session. */
function isNew(rig: Rig, { session_id: id, data }: ReturnType<Rig['app']['delivered']>[number]): boolean {
  return rig.emulator.ledger().turns.findLast((turn) => turn.session_id === id)?.id === data.turn?.id
}
