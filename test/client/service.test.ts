import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { createService } from '../../src/client/service.ts'
import { faultOf, refusal, routes, startBench } from '../support/service/client.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'
import type { Asked } from '../support/service/server.ts'

const page = (data: unknown[], more = false): object => ({
  body: { object: 'list', data, has_more: more, last_id: more ? 'cursor' : '' },
})
const session = { id: 's1', status: 'idle', updated_at: 1, required_actions: [] }

describe('reading', () => {
  test('sends the token, and in a query only parameters of the interface', async () => {
    await using bench = await startBench(
      routes(null, {
        'GET /v1/sessions': () => page([session]),
        'GET /v1/sessions/s1/turns': () => page([]),
      }),
    )
    const query = {
      limit: 500,
      order: 'asc',
      after: 'a b',
      status: 'requires_action',
      colour: 'blue',
    } as const
    expect((await bench.service.listSessions(query)).data).toMatchObject([{ id: 's1' }])
    await bench.service.listTurns('s1', query)
    expect(bench.server.asked.map((asked) => asked.query)).toEqual([
      { limit: '100', order: 'asc', after: 'a b', status: 'requires_action' },
      { limit: '100', order: 'asc', after: 'a b' },
    ])
    expect(bench.server.asked[0]?.headers['authorization']).toBe('Bearer svc_pat_one')
  })

  test('an id is data and never becomes another path', async () => {
    await using bench = await startBench(() => refusal(404, 'not_found'))
    for (const id of ['../webhooks', 'a/b', 'x?y=z', '..', '%2e%2e', 'ü#1', '\ud800']) {
      expect(await faultOf(bench.service.readSession(id))).toMatchObject({ notFound: true })
    }
    const paths = bench.server.asked.map(({ path }) => path).filter((path) => path !== '/v1/openapi.json')
    expect(paths).toHaveLength(7)
    expect(paths.every((path) => /^\/v1\/sessions\/[^/]+$/.test(path))).toBe(true)
  })

  test('an entry that cannot be read is left out and reported', async () => {
    await using bench = await startBench(
      routes(null, { 'GET /v1/sessions': () => page([{ id: 's0' }, session]) }),
    )
    expect((await bench.service.listSessions({})).data.map(({ id }) => id)).toEqual(['s1'])
    expect(bench.warnings).toHaveLength(1)
  })

  test.each([
    ['no JSON', 'hello'],
    ['JSON of another shape', '[1,2]'],
    ['half of it', '{"object":"list","da'],
    ['endless nesting', '['.repeat(500_000)],
    ['nothing', ''],
  ])('an answer of %s is malformed', async (_what, body) => {
    await using bench = await startBench(() => ({ body }))
    expect(await faultOf(bench.service.listSessions({}))).toMatchObject({
      code: 'malformed_answer',
      status: 200,
    })
  })

  test('a huge answer is cut off', async () => {
    await using bench = await startBench(() => ({ body: 'x'.repeat(33 * 1024 * 1024) }))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'answer_too_large', status: 200 })
  })

  test('a page that is too long is asked for with fewer entries, until one is too long by itself', async () => {
    const asked: number[] = []
    let long = 1024 * 1024
    await using bench = await startBench(
      routes(null, {
        'GET /v1/sessions': ({ query }) => {
          const limit = Number(query['limit'])
          asked.push(limit)
          return page(Array.from({ length: limit }, () => ({ ...session, title: 'x'.repeat(long) })))
        },
      }),
    )
    const lengthOf = async (limit: number) => (await bench.service.listSessions({ limit })).data.length
    expect(await lengthOf(100)).toBe(25)
    expect([await lengthOf(100), await lengthOf(20)]).toEqual([16, 20])
    expect(asked).toEqual([100, 50, 25, 32, 16, 20])
    long *= 40
    expect(await faultOf(bench.service.listSessions({ limit: 2 }))).toMatchObject({
      code: 'answer_too_large',
    })
  })

  test('a single turn is null where its route is not known, and so is the list of artifacts', async () => {
    await using bench = await startBench(routes({ paths: { '/v1/health': { get: {} } } }, {}))
    await bench.service.discover()
    expect(await bench.service.readTurn('s1', 't1')).toBeNull()
    expect(await bench.service.listArtifacts('s1')).toBeNull()
  })

  test('a single turn is read where the document has it', async () => {
    const turn = { id: 't/1', status: 'completed' }
    await using bench = await startBench(
      routes(otherDocument, { 'GET /v1/runs/t%2F1': () => ({ body: turn }) }),
    )
    expect(await bench.service.readTurn('s1', 't/1')).toMatchObject({ id: 't/1', sessionId: 's1' })
  })

  test('artifacts and subscriptions are read to the last page', async () => {
    const paged = (asked: Asked): object =>
      page(
        [{ id: `whsub_${asked.query['after'] ?? 'first'}`, url: 'https://a.example' }],
        !('after' in asked.query),
      )
    await using bench = await startBench(
      routes(plainDocument, { 'GET /v1/webhooks': paged, 'GET /v1/sessions/s1/artifacts': paged }),
    )
    await bench.service.discover()
    expect((await bench.service.listWebhooks()).map(({ id }) => id)).toEqual(['whsub_first', 'whsub_cursor'])
    expect(await bench.service.listArtifacts('s1')).toHaveLength(2)
    expect(bench.server.asked.at(1)?.query).toEqual({})
  })

  test('reading ends although the service always has one more page', async () => {
    let at = 0
    await using bench = await startBench(() => ({
      body: { data: [{ id: `w${++at}`, url: 'https://a.example' }], has_more: true, last_id: `w${at}` },
    }))
    expect(await bench.service.listWebhooks()).toHaveLength(100)
  })
})

describe('acting', () => {
  test('an answer has the fields of the interface, the key, and gives the outcome', async () => {
    const path = '/v1/sessions/s1/actions'
    await using bench = await startBench(
      routes(plainDocument, { [`POST ${path}`]: () => ({ body: { outcome: 'not_delivered' } }) }),
    )
    await bench.service.discover()
    expect(await bench.service.answer('s1', 'c1', { output: '{"a":1}' }, { key: 'key-1' })).toBe(
      'not_delivered',
    )
    await bench.service.answer('s1', 'c2', { error: 'sorry' }, { key: 'key-2' })
    const [first, second] = bench.server.asked.filter((asked) => asked.path === path)
    expect(first).toMatchObject({
      headers: { 'idempotency-key': 'key-1', 'content-type': 'application/json' },
    })
    expect(JSON.parse(first?.body ?? '')).toEqual({ call_id: 'c1', output: '{"a":1}' })
    expect(JSON.parse(second?.body ?? '')).toEqual({ call_id: 'c2', error: 'sorry' })
  })

  test.each([
    ['call_é☂', 'call_%C3%A9%E2%98%82'],
    ['call_1\r\nx-evil: 1', 'call_1%0D%0Ax-evil%3A%201'],
    ['a%20b', 'a%2520b'],
    ['c'.repeat(300), hash('sha256', 'c'.repeat(300))],
  ])('an answer to a call whose id no header can carry (%j) has a key all the same', async (id, key) => {
    const path = '/v1/sessions/s1/actions'
    await using bench = await startBench(
      routes(plainDocument, { [`POST ${path}`]: () => ({ body: { outcome: 'answered' } }) }),
    )
    await bench.service.discover()
    expect(await bench.service.answer('s1', id, { output: 'x' }, { key: id })).toBe('answered')
    const asked = bench.server.asked.find((one) => one.path === path)
    expect(asked?.headers).toMatchObject({ 'idempotency-key': key })
    expect(asked?.headers['x-evil']).toBeUndefined()
  })

  test('an answer takes the form that another document gives it', async () => {
    await using bench = await startBench(routes(otherDocument, { 'POST /v1/tool-results': () => ({}) }))
    await bench.service.discover()
    expect(await bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key-1' })).toBeNull()
    const asked = bench.server.asked.at(-1)
    expect(JSON.parse(asked?.body ?? '')).toEqual({
      call_id: 'c1',
      session_id: 's1',
      kind: 'function',
      output: 'x',
    })
    expect(asked?.headers['x-request-key']).toBe('key-1')
  })

  test('an answer counts as accepted although its reply cannot be read', async () => {
    await using bench = await startBench(
      routes(plainDocument, { 'POST /v1/sessions/s1/actions': () => ({ body: 'thanks' }) }),
    )
    await bench.service.discover()
    expect(await bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key' })).toBeNull()
    expect(bench.warnings).toHaveLength(1)
  })

  test.each([
    ['plain', plainDocument, '/v1/sessions/s1/input', (text: string) => ({ type: 'input.message', text })],
    [
      'other',
      otherDocument,
      '/v1/sessions/s1/messages',
      (content: string) => ({ event: { type: 'input.message', channel: 'user', content } }),
    ],
  ])('a message has the form that the %s document gives it', async (_which, document, path, expected) => {
    await using bench = await startBench(routes(document, { [`POST ${path}`]: () => ({ status: 202 }) }))
    await bench.service.discover()
    const text = 'say "hi" {{text}} {{call_id}} $& \\ \u2028'
    await bench.service.sendMessage('s1', text, { key: 'key' })
    expect(JSON.parse(bench.server.asked.at(-1)?.body ?? '')).toEqual(expected(text))
  })

  test('a subscription is made for all events', async () => {
    const made = { id: 'whsub_1', url: 'https://a.example', events: [], secret: 'shh', active: true }
    await using bench = await startBench(
      routes(null, { 'POST /v1/webhooks': () => ({ status: 201, body: made }) }),
    )
    expect(await bench.service.createWebhook('https://a.example', 'key')).toEqual(made)
    expect(JSON.parse(bench.server.asked.at(-1)?.body ?? '')).toEqual({
      url: 'https://a.example',
      events: [],
    })
  })

  test('a subscription that exists already is a conflict, in the words of the service', async () => {
    await using bench = await startBench(
      routes(null, { 'POST /v1/webhooks': () => refusal(409, 'conflict') }),
    )
    expect(await faultOf(bench.service.createWebhook('https://a.example', 'key'))).toMatchObject({
      code: 'conflict',
      requestId: 'req_1',
      message: 'refused: conflict',
    })
  })

  test('a subscription is deleted', async () => {
    await using bench = await startBench(
      routes(null, { 'DELETE /v1/webhooks/whsub_1': () => ({ status: 204 }) }),
    )
    await bench.service.deleteWebhook('whsub_1')
    expect(bench.server.asked).toHaveLength(1)
  })
})

describe('routes', () => {
  test('one that neither document nor configuration has is reported, and nothing is sent', async () => {
    await using bench = await startBench(routes({ paths: { '/v1/health': { get: {} } } }, {}))
    await bench.service.discover()
    expect(await faultOf(bench.service.answer('s', 'c', { output: '' }, { key: 'k' }))).toMatchObject({
      code: 'route_unknown',
      message: expect.stringContaining('answer_path'),
    })
    expect(await faultOf(bench.service.sendMessage('s', 'hi', { key: 'k' }))).toMatchObject({
      code: 'route_unknown',
    })
    expect(bench.server.asked).toHaveLength(1)
  })

  test('a document that could not be read is asked for again when it is needed, though not at once', async () => {
    let there = false
    await using bench = await startBench(
      routes(plainDocument, {
        'POST /v1/sessions/s1/actions': () => ({ body: { outcome: 'ok' } }),
        'GET /v1/openapi.json': () => (there ? { body: plainDocument } : { status: 404 }),
      }),
    )
    expect(await bench.service.discover()).toMatchObject({
      documented: false,
      fault: expect.stringMatching(/404/),
    })
    there = true
    expect(await faultOf(bench.service.answer('s1', 'c', { output: '' }, { key: 'k' }))).toMatchObject({
      code: 'route_unknown',
    })
    bench.clock.advance(5000)
    expect(await bench.service.answer('s1', 'c', { output: '' }, { key: 'k' })).toBe('ok')
    expect(bench.service.discovery()).toMatchObject({ documented: true, fault: null })
  })

  test('a route that was found stays known when the document is broken later', async () => {
    let document: unknown = plainDocument
    await using bench = await startBench(routes(null, { 'GET /v1/openapi.json': () => ({ body: document }) }))
    await bench.service.discover()
    document = { paths: 'none' }
    expect((await bench.service.discover()).routes.answer).toMatchObject({ found: true })
    expect(bench.service.discovery().fault).not.toBeNull()
  })

  test('one that moves is found again and the request goes there', async () => {
    let document: unknown = plainDocument
    await using bench = await startBench(
      routes(null, {
        'GET /v1/openapi.json': () => ({ body: document }),
        'POST /v1/tool-results': () => ({ body: { outcome: 'delivered' } }),
      }),
    )
    await bench.service.discover()
    document = otherDocument
    bench.clock.advance(60_000)
    expect(await bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'k' })).toBe('delivered')
    expect(JSON.parse(bench.server.asked.at(-1)?.body ?? '')).toMatchObject({ kind: 'function' })
  })

  test('missing resources cause at most one read of the document in a minute', async () => {
    await using bench = await startBench(routes(plainDocument, {}))
    await bench.service.discover()
    const read = (): number => bench.server.asked.filter(({ path }) => path === '/v1/openapi.json').length
    for (let one = 0; one < 20; one++) await faultOf(bench.service.readTurn('s1', 't1'))
    expect(read()).toBe(1)
    bench.clock.advance(60_000)
    for (let one = 0; one < 20; one++) await faultOf(bench.service.readTurn('s1', 't1'))
    expect(read()).toBe(2)
  })

  test('a deleted session does not cause a read of the document', async () => {
    await using bench = await startBench(routes(plainDocument, {}))
    expect(await faultOf(bench.service.readSession('s1'))).toMatchObject({ code: 'not_found', status: 404 })
    expect(bench.server.asked).toHaveLength(1)
  })

  test('the document is read without the token, and with it only where it is wanted', async () => {
    await using bench = await startBench((asked) =>
      'authorization' in asked.headers ? { body: plainDocument } : { status: 401 },
    )
    expect((await bench.service.discover()).documented).toBe(true)
    expect(bench.service.authorized()).toBe(true)
    expect(bench.server.asked.map(({ headers }) => 'authorization' in headers)).toEqual([false, true])
  })

  test('an override that cannot be used stops the start', async () => {
    await using bench = await startBench(() => ({}))
    const { clock } = bench
    const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
    const http = {
      exchange: () => Promise.reject(new Error()),
      send: () => ({ abort: () => undefined }),
      open: () => Promise.reject(new Error()),
      async close() {},
    }
    const options = {
      baseUrl: 'http://x',
      token: 't',
      http,
      clock,
      random: { next: () => 0, hex: () => '' },
      log,
    }
    expect(() => createService({ ...options, routes: { answer_path: 'nonsense' } })).toThrow(OperatorError)
  })
})

test('the offset of the clocks comes from the dates of the answers', async () => {
  await using bench = await startBench(() => ({ body: {}, headers: { date: new Date(0).toUTCString() } }))
  await faultOf(bench.service.health())
  expect(Math.abs(bench.service.clockOffset() + bench.clock.now())).toBeLessThan(1000)
})

test('each request is observed once, and the rest of the budget is reported', async () => {
  const left: [string, number][] = []
  await using bench = await startBench(
    routes(plainDocument, {
      'GET /v1/sessions': () => ({
        ...page([]),
        headers: { 'x-ratelimit-remaining': '41', 'x-ratelimit-bucket': 'reads' },
      }),
    }),
    { onBudget: (bucket, remaining) => left.push([bucket, remaining]) },
  )
  await bench.service.discover()
  await bench.service.listSessions({})
  await faultOf(bench.service.readSession('s1'))
  expect(bench.seen).toEqual([
    { operation: 'discover', statusClass: '2xx' },
    { operation: 'listSessions', statusClass: '2xx' },
    { operation: 'readSession', statusClass: '4xx' },
  ])
  expect(left).toEqual([['reads', 41]])
  expect(bench.service.budget()).toEqual({ reads: 41 })
})
