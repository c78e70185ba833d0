import { describe, expect, it } from 'vitest'
import { descriptionOf } from '../emulator/described.ts'
import { listen } from '../emulator/listener.ts'
import { receive } from '../emulator/receiver.ts'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  until,
  type Bench,
  type Fields,
  type Reply,
} from '../emulator/support.ts'
import { operationsOf } from './description.ts'

const MIB = 1024 * 1024
const IDLE = 5 * 60_000

const create = (bench: Bench, body: unknown = {}): Promise<Reply> => bench.call('POST', '/v1/sessions', body)

/** What a reply says of the budget, whatever the profile calls its headers. */
function budgetOf(
  bench: Bench,
  { headers }: Pick<Reply, 'headers'>,
): { bucket: unknown; left: number; size: number } {
  const [bucket, left, size] =
    bench.details.name === 'a'
      ? ['x-ratelimit-bucket', 'x-ratelimit-remaining', 'x-ratelimit-limit']
      : ['service-budget-name', 'service-budget-left', 'service-budget-size']
  return { bucket: headers[bucket], left: Number(headers[left]), size: Number(headers[size]) }
}

function file(bytes: number, path: string): Fields {
  return { type: 'inline', path, data: Buffer.alloc(bytes).toString('base64') }
}

const files = (count: number, bytes: number): Fields => ({
  environment: { files: Array.from({ length: count }, (_, index) => file(bytes, `${index}.bin`)) },
})

async function settledTurn(bench: Bench, text: string): Promise<{ id: string; turn: Fields }> {
  const id = await bench.session()
  await bench.send(id, text)
  return { id, turn: await bench.settle(id) }
}

describe.each(PROFILES)('limits, profile %s', (profile) => {
  it('LIM-01 LIM-02 a body has at most 1 MiB, that of a creation 16 MiB', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const sized = (bytes: number): string => {
      const frame = JSON.stringify(bench.message(''))
      return JSON.stringify(bench.message('x'.repeat(bytes - frame.length)))
    }
    const send = (bytes: number) => bench.call('POST', bench.path('message', id), sized(bytes))
    expect((await send(MIB)).status).toBe(202)
    const over = await send(MIB + 1)
    expect([over.status, codeOf(over)]).toEqual([400, 'invalid_request'])
    const title = (bytes: number): string => JSON.stringify({ title: 'x'.repeat(bytes - 12) })
    expect((await create(bench, title(16 * MIB))).status).toBe(201)
    const larger = await create(bench, title(16 * MIB + 1))
    expect([larger.status, codeOf(larger)]).toEqual([400, 'invalid_request'])
  })

  it('LIM-03 LIM-04 limit goes from 1 to 100, is refused beyond, and is 20 when left out', async () => {
    const bench = await open(profile)
    const { id } = await settledTurn(bench, 'burst 130 10')
    const place = `/v1/sessions/${id}/items`
    const rows = async (query: string) => rowsOf((await bench.call('GET', place + query)).body).length
    expect([await rows(''), await rows('?limit=1'), await rows('?limit=100')]).toEqual([20, 1, 100])
    for (const limit of ['101', '0', '-1', '1.5', '1e999', 'all', '']) {
      const reply = await bench.call('GET', `${place}?limit=${limit}`)
      expect([limit, reply.status, codeOf(reply)]).toEqual([limit, 400, 'invalid_request'])
    }
    const { document } = await descriptionOf(profile)
    const described = operationsOf(document)
      .flatMap(({ operation }) => rowsOf(operation['parameters']))
      .filter(({ name }) => name === 'limit')
    expect(described.length).toBeGreaterThan(5)
    for (const { schema } of described)
      expect(schema).toMatchObject({ minimum: 1, maximum: 100, default: 20 })
  })

  it('LIM-05 LIM-06 LIM-07 LIM-08 an organization has 25 sessions; paused ones count, deleted ones do not', async () => {
    const bench = await open(profile)
    const { id } = await settledTurn(bench, 'say hello')
    for (let n = 1; n < 25; n++) expect((await create(bench)).status).toBe(201)
    const full = await create(bench)
    expect([full.status, codeOf(full)]).toEqual([429, 'project_limit_exceeded'])
    await bench.emulator.advance(IDLE)
    expect(bench.events(id)).toContain('sandbox.paused')
    expect(codeOf(await create(bench))).toBe('project_limit_exceeded')
    await bench.call('DELETE', `/v1/sessions/${id}`)
    expect((await create(bench)).status).toBe(201)
    expect(codeOf(await create(bench))).toBe('project_limit_exceeded')
  })

  it('LIM-09 a session queues five messages', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'hang')
    for (let n = 1; n <= 5; n++) {
      const { body } = await bench.send(id, 'say hello')
      expect(body).toMatchObject({ queued: true, [profile === 'a' ? 'position' : 'queue_position']: n })
    }
    expect(codeOf(await bench.send(id, 'say hello'))).toBe('queue_full')
  })

  it('LIM-10 LIM-11 LIM-12 a session has 32 tools, with names of 1 to 64 characters and deadlines of 1 to 7200 s', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const put = async (tools: unknown[]) =>
      (await bench.call('PUT', `/v1/sessions/${id}/tools`, { tools })).status
    const tool = (name: string, timeout_seconds = 60): Fields => ({ type: 'function', name, timeout_seconds })
    const many = (count: number) => Array.from({ length: count }, (_, index) => tool(`f${index}`))
    expect([await put(many(32)), await put(many(33))]).toEqual([200, 400])
    const long = 'n'.repeat(64)
    expect([await put([tool('n')]), await put([tool(long)])]).toEqual([200, 200])
    expect([await put([tool('')]), await put([tool(`${long}n`)])]).toEqual([400, 400])
    expect([await put([tool('f', 1)]), await put([tool('f', 7200)])]).toEqual([200, 200])
    expect([await put([tool('f', 0)]), await put([tool('f', 7201)]), await put([tool('f', 1.5)])]).toEqual([
      400, 400, 400,
    ])
    expect((await create(bench, { agent: { tools: many(33) } })).status).toBe(400)
  })

  it('LIM-13 LIM-14 a session has 50 permission rules, with 500 characters a field', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const patch = async (permission_rules: unknown[]) =>
      (await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { permission_rules } })).status
    const rules = (count: number) =>
      Array.from({ length: count }, () => ({ decision: 'deny', tool: 'shell' }))
    expect([await patch(rules(50)), await patch(rules(51))]).toEqual([200, 400])
    for (const field of ['tool', 'path', 'command', 'domain']) {
      const rule = (length: number) => [{ decision: 'deny', [field]: 'x'.repeat(length) }]
      expect([await patch(rule(500)), await patch(rule(501))]).toEqual([200, 400])
    }
    expect((await create(bench, { agent: { permission_rules: rules(51) } })).status).toBe(400)
  })

  it('LIM-15 LIM-16 an organization has 25 model connections; the refusal names the operation that frees one', async () => {
    const bench = await open(profile)
    const connect = (key: string) => bench.call('POST', '/v1/model-credentials', { key })
    for (let n = 1; n < 25; n++) expect((await connect(`nw-${n}`)).status).toBe(201)
    const refused = await connect('nw-25')
    expect(refused.status).toBe(400)
    const { method, path } = bench.details.disconnect
    expect(messageOf(refused)).toContain(`${method} ${path}`)
    const [first] = rowsOf((await bench.call('GET', '/v1/model-credentials')).body)
    await bench.call(method, path.replace('{credential_id}', String(first?.['id'])))
    expect((await connect('nw-25')).status).toBe(201)
  })

  it('LIM-17 LIM-18 an organization has 25 templates, and the same name replaces', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    // Where templates have no place of their own to be saved at, they are agents by another name.
    const own = operationsOf(document).find(
      ({ method, path }) => method === 'POST' && path.includes('template'),
    )
    const save = (name: string, tools: unknown[] = []) =>
      bench.call('POST', own?.path ?? bench.details.paths.saveAgent, { name, tools })
    const first = await save('t0')
    for (let n = 1; n < 25; n++) expect((await save(`t${n}`)).status).toBe(201)
    const refused = await save('t25')
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    const replaced = await save('t0', [{ type: 'browse' }])
    expect([replaced.status, replaced.body['id']]).toEqual([201, first.body['id']])
    const place = `/v1/environment-templates/${String(first.body['id'])}`
    expect((await bench.call('GET', place)).body).toMatchObject({ name: 't0', tools: [{ type: 'browse' }] })
  })

  it('LIM-19 instructions have 32000 characters', async () => {
    const bench = await open(profile)
    const save = async (length: number) =>
      (
        await bench.call('POST', bench.details.paths.saveAgent, {
          name: 'a',
          instructions: 'x'.repeat(length),
        })
      ).status
    expect([await save(32_000), await save(32_001)]).toEqual([201, 400])
  })

  it('LIM-20 LIM-21 an idempotency value has 255 characters; a longer one is refused, or not read, as the profile has it', async () => {
    const bench = await open(profile)
    const send = (length: number) =>
      bench.call('POST', '/v1/sessions', {}, { [bench.details.idempotency.header]: 'k'.repeat(length) })
    const [one, two] = [await send(255), await send(255)]
    expect([one.status, two.body['id']]).toEqual([201, one.body['id']])
    const long = await send(256)
    expect(long.status).toBe(profile === 'a' ? 400 : 201)
    expect((await send(256)).body['id'] === long.body['id']).toBe(profile === 'a')
  })

  it('LIM-22 LIM-23 a metadata value that is too long for the profile is refused, not cut', async () => {
    const bench = await open(profile)
    const most = profile === 'a' ? 512 : 256
    const id = await bench.session({ metadata: { a: 'x'.repeat(most) } })
    expect((await bench.read(id))['metadata']).toEqual({ a: 'x'.repeat(most) })
    const reply = await create(bench, { metadata: { a: 'x'.repeat(most + 1) } })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
  })

  it('LIM-24 a token lives for the 7, 30 or 90 days that it was minted for', async () => {
    const bench = await open(profile)
    const tokens: [number, string][] = []
    for (const days of [7, 30, 90]) {
      const { body } = await bench.call('POST', '/_emulator/tokens', { scopes: ['sessions:read'], days })
      tokens.push([days, String(body['token'])])
    }
    for (const days of [1, 8, 365, 7.5, '7'])
      expect((await bench.call('POST', '/_emulator/tokens', { scopes: ['cli'], days })).status).toBe(400)
    let day = 0
    for (const [days, token] of tokens) {
      bench.token = token
      await bench.emulator.advance((days - day) * 86_400_000 - 60_000)
      expect((await bench.call('GET', '/v1/health')).status).toBe(200)
      await bench.emulator.advance(60_000)
      expect((await bench.call('GET', '/v1/health')).status).toBe(401)
      day = days
    }
  })

  it('LIM-25 a workspace lives two hours from its start, and its running turn fails with it', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'hang')
    await until(async () => ((await bench.turns(id)).length === 1 ? true : undefined))
    await bench.emulator.advance(7_200_000 - 60_000)
    expect((await bench.turns(id))[0]?.['status']).toBe('working')
    await bench.emulator.advance(60_000)
    expect((await bench.settle(id))['status']).toBe('failed')
  })

  it('LIM-26 a workspace pauses after five minutes without work', async () => {
    const bench = await open(profile)
    const { id } = await settledTurn(bench, 'say hello')
    await bench.emulator.advance(IDLE - 30_000)
    expect(bench.events(id)).not.toContain('sandbox.paused')
    await bench.emulator.advance(30_000)
    expect(bench.events(id)).toContain('sandbox.paused')
  })

  it('LIM-27 a webhook receiver has ten seconds; then the delivery is tried again', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    receiver.answer = null
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['session.created'] })
    await bench.session()
    const delivery = () => bench.emulator.ledger().deliveries[0]
    await until(() => (receiver.received.length === 1 ? true : undefined))
    await bench.emulator.advance(7000)
    expect(delivery()?.attempts).toEqual([])
    receiver.answer = 204
    await bench.emulator.advance(3000)
    await until(() => (delivery()?.attempts.length === 1 ? true : undefined))
    await bench.emulator.advance(5000)
    await until(() => (delivery()?.status === 'delivered' ? true : undefined))
    expect(delivery()?.attempts).toMatchObject([{ error: 'no answer in time' }, { status: 204 }])
  })

  it('LIM-28 a delivery has six attempts over about nine hours; then it is dead, and says why', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    receiver.answer = 302
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['session.created'] })
    await bench.session()
    await until(() => (receiver.received.length === 1 ? true : undefined))
    await bench.emulator.advance(10 * 3_600_000)
    const [delivery] = bench.emulator.ledger().deliveries
    expect([delivery?.status, delivery?.attempts.length]).toEqual(['dead', 6])
    expect(delivery?.reason).toBe('6 attempts failed, the last: status 302')
    const hours = (Number(delivery?.attempts.at(-1)?.at) - Number(delivery?.created_at)) / 3_600_000
    expect(hours).toBeGreaterThan(8.5)
    expect(hours).toBeLessThan(9.5)
    await bench.emulator.advance(10 * 3_600_000)
    expect(receiver.received).toHaveLength(6)
  })

  it('LIM-29 turn.completed waits thirty seconds for artifacts, then is sent regardless, once', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['turn.completed'] })
    const id = await bench.session()
    await bench.send(id, 'collect 45s\nwrite outputs/a.txt hi')
    await bench.reach(id, 'idle')
    await bench.emulator.advance(25_000)
    expect(receiver.received).toHaveLength(0)
    await bench.emulator.advance(5000)
    await until(() => (receiver.received.length === 1 ? true : undefined))
    expect((await bench.turns(id))[0]?.['artifacts']).toBe('pending')
    await bench.emulator.advance(15_000)
    expect((await bench.turns(id))[0]?.['artifacts']).toBe('ready')
    expect(bench.emulator.ledger().deliveries).toHaveLength(1)
  })

  it('LIM-30 a stream pings every fifteen seconds', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    await bench.emulator.advance(14_000)
    expect(stream.comments).toEqual([])
    await bench.emulator.advance(31_500)
    await until(() => (stream.comments.length === 3 ? true : undefined))
  })

  it('LIM-31 a reader about 1 MiB behind loses transient frames, and no others', async () => {
    const bench = await open(profile, { limits: { closeStreamBytes: 2 ** 30 } })
    const id = await bench.session()
    const stream = await listen(bench)
    stream.response.pause()
    // More than the sockets between can hold.
    const payload = { text: 'x'.repeat(1_000_000) }
    for (let n = 0; n < 30; n++) bench.emulator.publish(id, 'agent.message', payload)
    await bench.send(id, 'think hmm\nsay hello')
    await bench.settle(id)
    stream.response.resume()
    await stream.hear('turn.ended')
    const persisted = stream.frames.filter((frame) => frame.id !== undefined)
    expect(persisted).toHaveLength(bench.emulator.ledger().last_seq)
    expect(stream.frames.filter(({ data }) => data['seq'] === null)).toEqual([])
    await bench.send(id, 'think hmm')
    await stream.hear('agent.thinking')
  })

  it('LIM-32 a reader 8 MiB behind is cut off', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    stream.response.pause()
    const payload = { text: 'x'.repeat(100_000) }
    let seq = 0
    await until(() => {
      seq = bench.emulator.publish(id, 'agent.message', payload)
      return bench.emulator.openStreams() === 0 || seq > 500 ? true : undefined
    })
    expect(bench.emulator.openStreams()).toBe(0)
    // What the sockets between hold comes on top of the eight mebibytes.
    expect(seq * 100_000).toBeGreaterThan(8 * MIB)
    expect(seq * 100_000).toBeLessThan(24 * MIB)
    stream.response.resume()
    await until(() => (stream.closed ? true : undefined))
    const cursor = stream.frames.at(-1)?.id ?? '0'
    const again = await listen(bench, `/v1/events?last_event_id=${cursor}`)
    await until(() => (again.frames.at(-1)?.id === String(seq) ? true : undefined))
  })

  it('LIM-31 LIM-32 both backlogs are counted in bytes that no reader took', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    const publish = (bytes: number) =>
      bench.emulator.publish(id, 'agent.message', { text: 'x'.repeat(bytes) })
    const think = async (text: string) => {
      await bench.send(id, `think ${text}`)
      await bench.settle(id)
      await bench.reach(id, 'idle')
    }
    // Nothing leaves, so that every byte is a backlog.
    bench.emulator.faults.set({ stall_streams: true })
    publish(MIB - 20_000)
    await think('early')
    publish(20_000)
    await think('late')
    bench.emulator.faults.set({})
    await until(() =>
      stream.frames.filter(({ event }) => event === 'turn.ended').length === 2 ? true : undefined,
    )
    const thoughts = stream.frames.filter(({ event }) => event === 'agent.thinking')
    expect(thoughts.map(({ data }) => data['payload'])).toMatchObject([{ delta: 'early' }])
    bench.emulator.faults.set({ stall_streams: true })
    for (let n = 0; n < 8; n++) publish(MIB)
    expect(bench.emulator.openStreams()).toBe(1)
    publish(1)
    await until(() => (stream.closed ? true : undefined))
  })

  it('LIM-33 one reconnect replays 50,000 events', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (let n = 1; n <= 50_003; n++) bench.emulator.publish(id, 'agent.todos', {})
    const stream = await listen(bench, '/v1/events?last_event_id=0')
    await stream.hear(bench.details.stream.stop.name)
    expect(stream.frames).toHaveLength(50_001)
    const rest = await listen(bench, '/v1/events?last_event_id=50000')
    await until(() => (rest.frames.length === 3 ? true : undefined))
  })

  it('LIM-34 LIM-35 LIM-36 LIM-39 LIM-40 LIM-41 LIM-42 LIM-43 LIM-44 LIM-45 a token has two buckets that refill all the time, shown in every reply', async () => {
    const limits = { creationBurst: 2, creationPerSecond: 0.01, readsBurst: 100, readsPerSecond: 0.01 }
    const bench = await open(profile, { limits })
    const names = profile === 'a' ? ['sessions.create', 'reads'] : ['create', 'read']
    const first = await create(bench)
    expect(budgetOf(bench, first)).toEqual({ bucket: names[0], left: 1, size: 2 })
    await create(bench)
    for (let n = 0; n < 3; n++) {
      const refused = await create(bench)
      expect([refused.status, codeOf(refused)]).toEqual([429, 'rate_limit_exceeded'])
      // Asking again and again neither costs anything nor puts the time off.
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(100)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(90)
      expect(budgetOf(bench, refused).left).toBe(0)
    }
    const read = await bench.call('GET', '/v1/sessions')
    expect([read.status, budgetOf(bench, read)]).toEqual([200, { bucket: names[1], left: 99, size: 100 }])
    const id = String(first.body['id'])
    const written = await bench.call('PATCH', `/v1/sessions/${id}`, { title: 'x' })
    expect(budgetOf(bench, written).left).toBe(profile === 'a' ? 98 : 99)
    const missing = await bench.call('GET', '/v1/sessions/none')
    expect(budgetOf(bench, missing).left).toBe(profile === 'a' ? 97 : 98)
    const stream = await listen(bench)
    expect(budgetOf(bench, stream.response).bucket).toBe(names[1])
    await bench.emulator.advance(100_000)
    expect((await create(bench)).status).toBe(201)
    expect((await create(bench)).status).toBe(429)
    bench.token = bench.emulator.mintToken(['sessions:write']).token
    expect((await create(bench)).status).toBe(201)
  })

  it('LIM-37 LIM-38 the amounts and what flows back in a second are up to the profile', async () => {
    const bench = await open(profile, { limits: { sessions: 100 } })
    const [perSecond, readsPerSecond] = profile === 'a' ? [2, 20] : [1, 10]
    const read = async () => budgetOf(bench, await bench.call('GET', '/v1'))
    const made = async () => budgetOf(bench, await create(bench))
    expect([(await made()).size, (await read()).size]).toEqual(profile === 'a' ? [120, 1200] : [60, 600])
    for (let n = 0; n < 25; n++) await made()
    for (let n = 0; n < 250; n++) await read()
    const before = { creations: (await made()).left, reads: (await read()).left }
    await bench.emulator.advance(10_000)
    // One was paid in between; real time, which passes meanwhile, adds less than half as much again.
    const gained = { creations: (await made()).left + 1, reads: (await read()).left + 1 }
    for (const [amount, rate] of [
      [gained.creations - before.creations, perSecond],
      [gained.reads - before.reads, readsPerSecond],
    ] as const) {
      expect(amount).toBeGreaterThanOrEqual(10 * rate - 1)
      expect(amount).toBeLessThan(15 * rate)
    }
  })

  it('LIM-42 a refusal at the session ceiling carries the budget, and is not charged', async () => {
    const bench = await open(profile, { limits: { sessions: 0, creationBurst: 2 } })
    for (let n = 0; n < 5; n++) {
      const reply = await create(bench)
      expect([codeOf(reply), budgetOf(bench, reply).left]).toEqual(['project_limit_exceeded', 2])
    }
  })

  it('LIM-39 the budget headers that are described are the ones that are sent', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    const operation = operationsOf(document).find(
      ({ path, method }) => path === '/v1/sessions' && method === 'GET',
    )
    const { responses } = (operation?.operation ?? {}) as { responses: Record<string, { headers: Fields }> }
    const { headers } = await bench.call('GET', '/v1/sessions')
    const described = Object.keys(responses['200']?.headers ?? {})
    expect(described.length).toBeGreaterThan(2)
    for (const name of described) expect(headers).toHaveProperty([name])
  })

  it('LIM-46 LIM-48 LIM-50 LIM-51 a token has 10 or 5 streams, as the profile has it; the next is refused unopened, a slot is freed late', async () => {
    const bench = await open(profile)
    const streams = []
    for (let n = 0; n < (profile === 'a' ? 10 : 5); n++) {
      const stream = await listen(bench)
      expect(stream.response.statusCode).toBe(200)
      streams.push(stream)
    }
    const refused = await bench.call('GET', '/v1/events')
    expect([refused.status, codeOf(refused)]).toEqual([429, 'rate_limit_exceeded'])
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(4)
    expect(refused.headers['content-type']).toContain('json')
    streams[0]?.leave()
    await until(() => (bench.emulator.openStreams() < streams.length ? true : undefined))
    await bench.emulator.advance(2500)
    expect((await bench.call('GET', '/v1/events')).status).toBe(429)
    await bench.emulator.advance(2000)
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('LIM-47 LIM-49 an organization has 50 or 20 streams, as the profile has it', async () => {
    const bench = await open(profile)
    const [tokens, each] = profile === 'a' ? [5, 10] : [4, 5]
    for (let n = 0; n < tokens; n++) {
      bench.token = bench.emulator.mintToken(['sessions:read']).token
      for (let m = 0; m < each; m++) expect((await listen(bench)).response.statusCode).toBe(200)
    }
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    const refused = await bench.call('GET', '/v1/events')
    expect([refused.status, codeOf(refused)]).toEqual([429, 'rate_limit_exceeded'])
  })

  it('LIM-52 LIM-53 files have ceilings of size, alone and together, and of number, which differ between the profiles', async () => {
    const bench = await open(profile)
    const expected = profile === 'a' ? 201 : 400
    expect((await create(bench, files(1, 2 * MIB))).status).toBe(201)
    expect((await create(bench, files(1, 3 * MIB))).status).toBe(expected)
    expect((await create(bench, files(1, 4 * MIB + 1))).status).toBe(400)
    expect((await create(bench, files(5, 1.8 * MIB))).status).toBe(expected)
    expect((await create(bench, files(6, 1.8 * MIB))).status).toBe(400)
    expect((await create(bench, files(64, 1))).status).toBe(201)
    expect((await create(bench, files(100, 1))).status).toBe(expected)
    expect((await create(bench, files(101, 1))).status).toBe(400)
  })

  it('LIM-54 LIM-56 LIM-57 LIM-58 a file over the artifact ceiling is skipped, and the turn succeeds all the same', async () => {
    const bench = await open(profile)
    const one = await settledTurn(bench, 'write outputs/a.bin 9MiB\nwrite outputs/b.txt hi')
    expect(one.turn).toMatchObject({ status: 'completed', artifacts: profile === 'a' ? 'ready' : 'partial' })
    const { id, turn } = await settledTurn(bench, 'write outputs/a.bin 11MiB\nwrite outputs/b.txt hi')
    expect(turn).toMatchObject({ status: 'completed', artifacts: 'partial' })
    expect(turn['artifacts_skipped']).toEqual([{ path: 'outputs/a.bin', reason: expect.stringMatching(/./) }])
    expect(rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)).toHaveLength(1)
  })

  it('LIM-55 all artifacts together have a ceiling, which differs between the profiles', async () => {
    const bench = await open(profile)
    const write = (count: number) =>
      Array.from({ length: count }, (_, n) => `write outputs/${n}.bin 8MiB`).join('\n')
    const [four, five, seven] = [
      await settledTurn(bench, write(4)),
      await settledTurn(bench, write(5)),
      await settledTurn(bench, write(7)),
    ]
    expect([four, five, seven].map(({ turn }) => turn['artifacts'])).toEqual(
      profile === 'a' ? ['ready', 'ready', 'partial'] : ['ready', 'partial', 'partial'],
    )
  })

  it('LIM-59 text is cut at the inline ceiling, which differs between the profiles', async () => {
    const bench = await open(profile)
    const { id } = await settledTurn(
      bench,
      `write a.txt ${'x'.repeat(200_000)}\nwrite b.txt ${'x'.repeat(300_000)}`,
    )
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    const read = async (path: string) =>
      (await bench.call('GET', `/v1/sessions/${id}/files/content?path=${path}`)).body
    const [a, b] = [await read('a.txt'), await read('b.txt')]
    expect([a['truncated'], String(a['content']).length]).toEqual(
      profile === 'a' ? [false, 200_000] : [true, 131_072],
    )
    expect([b['truncated'], String(b['content']).length]).toEqual([true, profile === 'a' ? 262_144 : 131_072])
  })

  it('LIM-60 a listing is cut at the byte ceiling, which differs between the profiles', async () => {
    const bench = await open(profile)
    const name = (n: number): string => `${'d'.repeat(900)}${n}.txt`
    const lines = Array.from({ length: 200 }, (_, n) => `write ${name(n)} x`)
    const { id } = await settledTurn(bench, lines.join('\n'))
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    const { body } = await bench.call('GET', `/v1/sessions/${id}/files`)
    expect(body['truncated']).toBe(profile === 'b')
    expect(rowsOf(body).length === 200).toBe(profile === 'a')
  })

  it('LIM-61 a client may take a day and longer over a required action', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call f {}\nsay {{last}}')
    const [action] = await bench.actions(id)
    expect(action?.['expires_at']).toBe(null)
    await bench.emulator.advance(3 * 86_400_000)
    expect((await bench.read(id))['status']).toBe('requires_action')
    const { body } = await bench.answer(id, { call_id: action?.['call_id'], output: 'late' })
    expect(body['outcome']).toBe(bench.details.answer.outcomes.delivered)
    expect((await bench.settle(id))['status']).toBe('completed')
  })

  it('LIM-62 LIM-63 LIM-64 a cursor that was deleted, never issued or of another organization gives an empty page', async () => {
    const bench = await open(profile)
    const other = await open(profile)
    const [gone, kept, foreign] = [await bench.session(), await bench.session(), await other.session()]
    await bench.call('DELETE', `/v1/sessions/${gone}`)
    for (const after of [gone, foreign, 'never', '']) {
      const { status, body } = await bench.call('GET', `/v1/sessions?after=${after}`)
      expect([status, body['data'], body['has_more']]).toEqual([200, [], false])
    }
    const places = [`/v1/sessions/${kept}/turns`, `/v1/sessions/${kept}/items`, '/v1/webhooks', '/v1/agents']
    for (const path of [...places, '/v1/model-credentials', '/v1/environment-profiles'])
      expect((await bench.call('GET', `${path}?after=never`)).body).toMatchObject({
        data: [],
        has_more: false,
      })
  })

  it('LIM-65 LIM-66 LIM-67 LIM-68 has_more looks one row further, in either order, descending when none is named', async () => {
    const bench = await open(profile)
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await bench.session())
    const page = async (query: string) => {
      const { body } = await bench.call('GET', `/v1/sessions?${query}`)
      return [rowsOf(body).map(({ id }) => ids.indexOf(String(id))), body['has_more']]
    }
    expect(await page('limit=4')).toEqual([[3, 2, 1, 0], false])
    expect(await page('limit=3')).toEqual([[3, 2, 1], true])
    expect(await page('limit=3&order=desc')).toEqual([[3, 2, 1], true])
    expect(await page('limit=2&order=asc')).toEqual([[0, 1], true])
    expect(await page(`limit=2&order=asc&after=${ids[1]}`)).toEqual([[2, 3], false])
    await bench.call('DELETE', `/v1/sessions/${ids[0]}`)
    expect(await page('limit=3')).toEqual([[3, 2, 1], false])
  })

  it('LIM-69 LIM-70 LIM-71 webhooks, model connections and profiles page by limit and after, and take no order', async () => {
    const bench = await open(profile)
    for (const n of [1, 2, 3]) {
      await bench.call('POST', '/v1/webhooks', { url: `https://app.example.com/${n}` })
      await bench.call('POST', '/v1/model-credentials', { key: `nw-${n}` })
    }
    for (const path of ['/v1/webhooks', '/v1/model-credentials']) {
      const first = (await bench.call('GET', `${path}?limit=2`)).body
      expect([rowsOf(first).length, first['has_more']]).toEqual([2, true])
      const rest = (await bench.call('GET', `${path}?limit=2&after=${String(first['last_id'])}`)).body
      expect(rowsOf(rest).length).toBe(path === '/v1/webhooks' ? 1 : 2)
    }
    for (const path of ['/v1/webhooks', '/v1/model-credentials', '/v1/environment-profiles', '/v1/agents']) {
      expect((await bench.call('GET', `${path}?limit=1`)).status).toBe(200)
      const ordered = await bench.call('GET', `${path}?order=asc`)
      expect([path, ordered.status, codeOf(ordered)]).toEqual([path, 400, 'invalid_request'])
      expect(messageOf(ordered)).toContain('order')
    }
  })
})
