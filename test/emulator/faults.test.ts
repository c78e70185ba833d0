import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FaultSettings } from '../../src/emulator/index.ts'
import { faultsSchema } from '../../src/emulator/fault-settings.ts'
import { listen } from './listener.ts'
import { receive, type Receiver } from './receiver.ts'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  until,
  type Bench,
  type ProfileName,
  type Reply,
} from './support.ts'

const CUT = /other side closed|ECONNRESET|socket hang up/

async function set(bench: Bench, settings: FaultSettings): Promise<void> {
  const reply = await bench.call('PUT', '/_emulator/faults', settings)
  expect(reply.status).toBe(200)
}

const statusOf = async (reply: Promise<Reply>): Promise<number> => (await reply).status

async function subscribed(
  profile: ProfileName,
): Promise<{ bench: Bench; receiver: Receiver; secret: string }> {
  const bench = await open(profile, { allowHttpWebhooks: true })
  const receiver = await receive()
  const { body } = await bench.call('POST', '/v1/webhooks', {
    url: receiver.url,
    events: ['session.created'],
  })
  return { bench, receiver, secret: String(body['secret']) }
}

const deliveryOf = (bench: Bench, index: number) => bench.emulator.ledger().deliveries[index]

async function worked(bench: Bench, text = 'say one'): Promise<string> {
  const id = await bench.session()
  await bench.send(id, text)
  await bench.settle(id)
  return id
}

describe.each(PROFILES)('faults on demand, profile %s', (profile) => {
  it('drop_streams cuts every stream at once, and once only', async () => {
    const bench = await open(profile)
    const streams = [await listen(bench), await listen(bench)]
    await set(bench, { drop_streams: true })
    for (const stream of streams) await until(() => (stream.closed ? true : undefined))
    expect(bench.emulator.faults.get()).toEqual({})
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('stall_streams delays every byte until it is turned off', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    await set(bench, { stall_streams: true })
    const id = await worked(bench, 'say held')
    await bench.emulator.advance(60_000)
    expect([stream.frames, stream.comments, stream.closed]).toEqual([[], [], false])
    await set(bench, {})
    await stream.hear('turn.ended')
    expect(stream.text).toContain(id)
  })

  it('slow_streams writes so many bytes a second, in pieces that are cut anywhere, and loses none', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    const pieces: string[] = []
    stream.response.on('data', (text: string) => pieces.push(text))
    await set(bench, { slow_streams: 20 })
    bench.emulator.publish(id, 'agent.message', { text: 'x'.repeat(40) })
    for (let tick = 0; tick < 20; tick++) await bench.emulator.advance(50)
    await until(() => (pieces.join('').length >= 20 ? true : undefined))
    // A second is over, and some real time.
    expect(pieces.join('').length).toBeLessThan(60)
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(20)
    expect(stream.frames).toEqual([])
    await set(bench, { slow_streams: 1_000_000 })
    await stream.hear('agent.message')
    const replayed = await listen(bench, '/v1/events?last_event_id=0')
    await replayed.hear('agent.message')
    expect(replayed.frames).toEqual(stream.frames)
  })

  it('stop_pings sends none', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    await set(bench, { stop_pings: true })
    await bench.emulator.advance(60_000)
    await set(bench, {})
    await bench.emulator.advance(15_000)
    await until(() => (stream.comments.length > 0 ? true : undefined))
    expect(stream.comments).toHaveLength(1)
  })

  it('refuse_streams answers 429 before a stream opens', async () => {
    const bench = await open(profile)
    await set(bench, { refuse_streams: 1 })
    expect(codeOf(await bench.call('GET', '/v1/events'))).toBe('rate_limit_exceeded')
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('stream_slots caps the streams of a token', async () => {
    const bench = await open(profile)
    await set(bench, { stream_slots: 1 })
    await listen(bench)
    expect(codeOf(await bench.call('GET', '/v1/events'))).toBe('rate_limit_exceeded')
    await set(bench, {})
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('replay_window stops a replay early', async () => {
    const bench = await open(profile)
    await worked(bench)
    await set(bench, { replay_window: 2 })
    const stream = await listen(bench, '/v1/events?last_event_id=0')
    await until(() => (stream.frames.length > 2 ? true : undefined))
    expect(stream.frames.map(({ id }) => id).slice(0, 2)).toEqual(['1', '2'])
    expect(stream.frames[2]?.id).toBeUndefined()
  })

  it('lose_cursors takes a good cursor for one that names no event', async () => {
    const bench = await open(profile)
    const id = await worked(bench)
    await set(bench, { lose_cursors: true })
    const stream = await listen(bench, '/v1/events?last_event_id=3')
    const marker = bench.emulator.publish(id, 'agent.todos', {})
    await until(() => (stream.frames.at(-1)?.id === String(marker) ? true : undefined))
    expect(stream.frames).toHaveLength(profile === 'a' ? 1 : marker)
  })

  it('webhooks_off keeps deliveries pending until it is lifted', async () => {
    const { bench, receiver } = await subscribed(profile)
    await set(bench, { webhooks_off: true })
    await bench.session()
    await bench.emulator.advance(60_000)
    expect(deliveryOf(bench, 0)).toMatchObject({ status: 'pending', attempts: [] })
    await set(bench, {})
    await until(() => (receiver.received.length === 1 ? true : undefined))
  })

  it('duplicate_webhooks sends a delivery so many times more', async () => {
    const { bench, receiver } = await subscribed(profile)
    await set(bench, { duplicate_webhooks: 2 })
    await bench.session()
    await until(() => (receiver.received.length === 3 ? true : undefined))
    expect(new Set(receiver.received.map(({ raw }) => raw)).size).toBe(1)
  })

  it('reorder_webhooks sends the later one of two first', async () => {
    const { bench, receiver } = await subscribed(profile)
    await set(bench, { reorder_webhooks: true })
    const ids = [await bench.session(), await bench.session()]
    await until(() => (receiver.received.length === 2 ? true : undefined))
    expect(receiver.received.map(({ raw }) => ids.findIndex((id) => raw.includes(id)))).toEqual([1, 0])
  })

  it('delay_webhooks delays every attempt', async () => {
    const { bench, receiver } = await subscribed(profile)
    await set(bench, { delay_webhooks: '1m' })
    await bench.session()
    await bench.emulator.advance(58_000)
    expect(receiver.received).toHaveLength(0)
    await bench.emulator.advance(2000)
    await until(() => (receiver.received.length === 1 ? true : undefined))
  })

  it('forge_webhooks signs with another secret', async () => {
    const { bench, receiver, secret } = await subscribed(profile)
    await set(bench, { forge_webhooks: true })
    await bench.session()
    const { headers, raw } = await until(() => receiver.received[0])
    const genuine = createHmac('sha256', secret)
      .update(`${String(headers['x-service-timestamp'])}.${raw}`)
      .digest('hex')
    expect(headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
    expect(headers['x-service-signature']).not.toBe(genuine)
  })

  it('give_up_webhooks makes deliveries dead and, in time, the subscription inactive', async () => {
    const { bench, receiver } = await subscribed(profile)
    const deaths = profile === 'a' ? 1 : 3
    await set(bench, { give_up_webhooks: deaths })
    for (let n = 0; n < deaths; n++) {
      await bench.session()
      await until(() => (deliveryOf(bench, n)?.status === 'dead' ? true : undefined))
    }
    expect(deliveryOf(bench, 0)).toMatchObject({ attempts: [], reason: 'given up by a fault' })
    expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)).toMatchObject([{ active: false }])
    expect(receiver.received).toEqual([])
  })

  it.each([
    ['directory_unavailable', 503, 'directory_unavailable', '7'],
    ['server_errors', 500, 'internal_error', undefined],
    ['rate_limit', 429, 'rate_limit_exceeded', '7'],
    ['unauthorized', 401, null, undefined],
  ] as const)('%s answers %i for as many requests as asked', async (fault, status, code, retryAfter) => {
    const bench = await open(profile)
    await set(bench, { [fault]: 2, retry_after: 7 })
    for (let n = 0; n < 2; n++) {
      const reply = await bench.call('GET', '/v1/sessions')
      expect([reply.status, codeOf(reply)]).toEqual([status, code ?? bench.details.auth.rejectedCode])
      expect(reply.headers['retry-after']).toBe(retryAfter)
    }
    expect((await bench.call('GET', '/v1/sessions')).status).toBe(200)
    expect(bench.emulator.faults.get()).toMatchObject({ [fault]: 0 })
  })

  it('bad_gateway answers 502 with a page of HTML', async () => {
    const bench = await open(profile)
    await set(bench, { bad_gateway: 1 })
    const html = await bench.call('POST', '/v1/sessions', {})
    expect([html.status, html.headers['content-type']]).toEqual([502, 'text/html'])
    expect(bench.emulator.ledger().sessions).toEqual([])
    expect((await bench.call('POST', '/v1/sessions', {})).status).toBe(201)
  })

  it('fail_operations fails one operation, under either of its names, and leaves the others alone', async () => {
    const bench = await open(profile)
    for (const name of ['createSession', bench.details.operationId('createSession')]) {
      await set(bench, { fail_operations: [{ operation: name, status: 507, times: 1 }] })
      expect(await statusOf(bench.call('GET', '/v1/sessions'))).toBe(200)
      const failed = await bench.call('POST', '/v1/sessions', {})
      expect([failed.status, codeOf(failed)]).toEqual([507, 'internal_error'])
      expect(await statusOf(bench.call('POST', '/v1/sessions', {}))).toBe(201)
    }
    expect(bench.emulator.ledger().sessions).toHaveLength(2)
  })

  it('fail_operations strikes with the probability that it is given', async () => {
    const bench = await open(profile, { limits: { readsBurst: 10_000 } })
    const failures = async (probability: number): Promise<number> => {
      await set(bench, { fail_operations: [{ probability }] })
      const replies = Array.from({ length: 200 }, () => statusOf(bench.call('GET', '/v1/health')))
      return (await Promise.all(replies)).filter((status) => status === 500).length
    }
    expect([await failures(0), await failures(1)]).toEqual([0, 200])
    const some = await failures(0.5)
    expect(some).toBeGreaterThan(20)
    expect(some).toBeLessThan(180)
  })

  it('fail_operations loses the reply to what was done', async () => {
    const bench = await open(profile)
    await set(bench, { fail_operations: [{ operation: 'createSession', lose_reply: true, times: 1 }] })
    const headers = { [bench.details.idempotency.header]: 'key' }
    await expect(bench.call('POST', '/v1/sessions', {}, headers)).rejects.toThrow(CUT)
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
    const again = await bench.call('POST', '/v1/sessions', {}, headers)
    expect([again.status, bench.emulator.ledger().sessions.length]).toEqual([201, 1])
  })

  it('project_limit refuses creations and forks with room to spare', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await set(bench, { project_limit: 2 })
    expect(codeOf(await bench.call('POST', '/v1/sessions', {}))).toBe('project_limit_exceeded')
    expect(codeOf(await bench.call('POST', `/v1/sessions/${id}/fork`))).toBe('project_limit_exceeded')
    expect(await statusOf(bench.call('POST', '/v1/sessions', {}))).toBe(201)
  })

  it('not_delivered replies to an answer that the sandbox did not hold the call', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await set(bench, { not_delivered: 1 })
    const reply = await bench.answer(id, { call_id: action?.['call_id'], output: 'x' })
    expect(reply.body['outcome']).toBe('not_delivered')
    expect((await bench.read(id))['required_actions']).toEqual([])
  })

  it('keep_answered takes an answer and goes on listing its call', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await set(bench, { keep_answered: 1 })
    const answer = () => bench.answer(id, { call_id: action?.['call_id'], output: 'x' })
    const taken = (await answer()).body['outcome']
    expect((await bench.read(id))['required_actions']).toHaveLength(1)
    expect((await answer()).body['outcome']).toBe(taken)
    expect((await bench.read(id))['required_actions']).toEqual([])
  })

  it('lose_message_replies and lose_answer_replies cut the connection once the work was done', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await set(bench, { lose_message_replies: 1, lose_answer_replies: 1 })
    const headers = { [bench.details.idempotency.header]: 'key-3' }
    await expect(bench.send(id, 'call f {}', headers)).rejects.toThrow(CUT)
    expect((await bench.send(id, 'call f {}', headers)).status).toBe(202)
    const [action] = await bench.actions(id)
    await expect(bench.answer(id, { call_id: action?.['call_id'], output: 'x' })).rejects.toThrow(CUT)
    await bench.reach(id, 'idle')
    const { messages, answers } = bench.emulator.ledger()
    expect([messages.length, answers.length]).toEqual([1, 1])
  })

  it('old_runtimes gives new sessions a runtime without newer features', async () => {
    const bench = await open(profile)
    await set(bench, { old_runtimes: 1 })
    const [old, id] = [await bench.session(), await bench.session()]
    const put = async (session: string) =>
      codeOf(await bench.call('PUT', `/v1/sessions/${session}/tools`, { tools: [] }))
    expect([await put(old), await put(id)]).toEqual(['bridge_incompatible', 'undefined'])
  })

  it('unreachable_mcp makes the named servers unreachable', async () => {
    const bench = await open(profile)
    await set(bench, { unreachable_mcp: ['tickets'] })
    const mcp = (name: string) => ({ type: 'mcp', name, url: 'https://mcp.example.com' })
    const id = await bench.session({ agent: { tools: [mcp('tickets'), mcp('wiki')] } })
    await bench.send(id, 'say hello')
    await bench.settle(id)
    expect(bench.events(id).filter((type) => type === 'mcp.unavailable')).toHaveLength(1)
  })

  it('fail_seeds leaves a seeded file out, with an item that names it', async () => {
    const bench = await open(profile)
    await set(bench, { fail_seeds: 1 })
    const data = Buffer.from('hi').toString('base64')
    const seed = (path: string) => ({ type: 'inline', path, data })
    const id = await bench.session({ environment: { files: [seed('a.txt'), seed('b.txt')] } })
    await bench.send(id, 'say hello')
    await bench.settle(id)
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    expect(rowsOf((await bench.call('GET', `/v1/sessions/${id}/files`)).body)).toMatchObject([
      { path: 'b.txt' },
    ])
    expect((await bench.items(id)).some((item) => JSON.stringify(item).includes('a.txt'))).toBe(true)
  })

  it('fail_artifacts fails the collection of a turn that succeeded', async () => {
    const bench = await open(profile)
    await set(bench, { fail_artifacts: 1 })
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    expect(await bench.settle(id)).toMatchObject({ status: 'completed', artifacts: 'failed' })
  })

  it('clock_skew_ms moves the Date of every answer and the timestamps of webhooks', async () => {
    const { bench, receiver } = await subscribed(profile)
    const dateOf = async (): Promise<number> =>
      Date.parse(String((await bench.call('GET', '/v1/health')).headers['date'])) - bench.emulator.now()
    expect(Math.abs(await dateOf())).toBeLessThan(5000)
    await set(bench, { clock_skew_ms: -600_000 })
    expect(Math.abs((await dateOf()) + 600_000)).toBeLessThan(5000)
    await bench.session()
    const { headers } = await until(() => receiver.received[0])
    expect(Math.abs(Number(headers['x-service-timestamp']) - bench.emulator.now() + 600_000)).toBeLessThan(
      5000,
    )
  })

  it('names everything that is wrong with a setting, and changes nothing', async () => {
    const bench = await open(profile)
    await set(bench, { rate_limit: 0, stop_pings: true })
    const wrong = {
      stall_stream: true,
      server_errors: -1,
      delay_webhooks: 'soon',
      stop_pings: 'yes',
      fail_operations: [{ operation: 'createSesion' }, { status: 404 }],
      clock_skew_ms: 0.5,
    }
    const reply = await bench.call('PUT', '/_emulator/faults', wrong)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    for (const part of [
      'did you mean "stall_streams"?',
      'server_errors must be >= 0',
      'delay_webhooks must be a duration',
      'stop_pings must be boolean',
      'fail_operations.0.operation: the description has no "createSesion"',
      'fail_operations.1.status must be >= 500',
      'clock_skew_ms must be integer',
    ])
      expect(messageOf(reply)).toContain(part)
    expect(bench.emulator.faults.get()).toEqual({ rate_limit: 0, stop_pings: true })
    expect(() => bench.emulator.faults.set({ drop_streams: 1 } as unknown as FaultSettings)).toThrow(
      /drop_streams/,
    )
  })
})

it('every fault is tried by a test of the emulator', () => {
  const folders = ['.', '../contract'].map((folder) => path.join(import.meta.dirname, folder))
  const tests = folders
    .flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(name, 'utf8'))
    .join('\n')
  const untried = Object.keys(faultsSchema.properties).filter(
    (name) => !new RegExp(`\\b${name}\\b`).test(tests),
  )
  expect(untried).toEqual([])
})
