import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient, ServiceError } from '../../src/client/index.ts'
import type { ClientOptions } from '../../src/client/index.ts'
import { freePort } from '../support/listen.ts'
import { refusal } from '../support/service/client.ts'
import { plainDocument } from '../support/service/documents.ts'
import { startServer } from '../support/service/server.ts'
import type { Answerer } from '../support/service/server.ts'
import { faultOf, PROFILES, stand, NO_JITTER, until } from './support.ts'

const session = { id: 's1', status: 'idle' }

/** A service with given answers, and a client of it. */
async function answered(answer: Answerer, options: Partial<ClientOptions> = {}) {
  const server = await startServer((asked, response) =>
    asked.path === '/v1/openapi.json' ? { body: plainDocument } : answer(asked, response),
  )
  const client = createClient({ baseUrl: server.url, token: 'svc_pat_one', random: NO_JITTER, ...options })
  onTestFinished(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  const asked = () => server.asked.filter(({ path }) => path !== '/v1/openapi.json')
  return { client, server, asked }
}

describe.each(PROFILES)('errors (profile %s)', (profile) => {
  it('say what the service said, of which operation, with the id of the request', async () => {
    const { client } = await stand(profile)
    const fault = await faultOf(client.sessions.create({ agent: { model: 'unknown' } }))
    expect(fault).toMatchObject({
      code: 'invalid_request',
      status: 400,
      operation: 'createSession',
      retryAfter: null,
    })
    expect(fault.message).toContain('unknown')
    expect(fault.requestId).toEqual(expect.any(String))
  })

  it('of the rate limit are retried after the wait that the service asks for; a creation acts once', async () => {
    const { client, emulator } = await stand(profile)
    await client.health()
    emulator.faults.set({ rate_limit: 1, retry_after: 1 })
    const started = performance.now()
    const { id } = await client.sessions.create()
    expect(performance.now() - started).toBeGreaterThanOrEqual(1000)
    expect(emulator.ledger().sessions.map((one) => one.id)).toEqual([id])
  })

  it('of a rate limit that lasts longer than the call may are reported at once, with the wait in milliseconds', async () => {
    const { client, emulator } = await stand(profile)
    emulator.faults.set({ rate_limit: 1, retry_after: 600 })
    expect(await faultOf(client.health({ timeout: 5000 }))).toMatchObject({
      code: 'rate_limit_exceeded',
      status: 429,
      retryAfter: 600_000,
    })
  })

  it('of the service are retried: 500, 502 with HTML, an unavailable directory', async () => {
    const { client, emulator } = await stand(profile)
    await client.health()
    emulator.faults.set({ server_errors: 1, bad_gateway: 1, directory_unavailable: 1, retry_after: 0 })
    expect((await client.sessions.create({ title: 'once' })).title).toBe('once')
    expect(emulator.ledger().sessions).toHaveLength(1)
    emulator.faults.set({ server_errors: 100 })
    expect(await faultOf(client.health())).toMatchObject({ code: 'internal_error', status: 500 })
  })

  it('of the limit of sessions are never retried', async () => {
    const { client } = await stand(profile, { limits: { sessions: 1 } })
    const { id } = await client.sessions.create()
    for (const ask of [() => client.sessions.create(), () => client.sessions.fork(id)])
      expect(await faultOf(ask())).toMatchObject({ code: 'project_limit_exceeded', status: 429 })
    await client.sessions.delete(id)
    await client.sessions.create()
  })

  it('of the token are final until a function returns another token', async () => {
    const { emulator } = await stand(profile)
    const first = emulator.mintToken(['sessions:read'])
    let token = first.token
    const client = createClient({ baseUrl: emulator.baseUrl, token: async () => token })
    onTestFinished(() => client.close())
    await client.health()
    emulator.revokeToken(first.id)
    expect(await faultOf(client.health())).toMatchObject({ status: 401 })
    expect(await faultOf(client.health())).toMatchObject({ status: 401, code: 'unauthorized' })
    token = emulator.token
    expect((await client.health()).usable).toBe(true)
  })

  it('of a missing scope name it', async () => {
    const { emulator } = await stand(profile)
    const { token } = emulator.mintToken(['sessions:read'])
    const client = createClient({ baseUrl: emulator.baseUrl, token })
    onTestFinished(() => client.close())
    const fault = await faultOf(client.sessions.create())
    expect(fault).toMatchObject({ code: 'permission_denied', status: 403 })
    expect(fault.message).toContain('sessions:write')
  })

  it('of a lost reply cause no second action', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    emulator.faults.set({ lose_message_replies: 1 })
    await client.sessions.send(id, 'say once')
    expect(emulator.ledger().events.filter(({ type }) => type === 'user.message')).toHaveLength(1)
  })

  it('do not occur where the caller repeats its own idempotency key', async () => {
    const { client } = await stand(profile)
    const once = { idempotencyKey: 'order-42' }
    expect((await client.sessions.create({}, once)).id).toBe((await client.sessions.create({}, once)).id)
    expect((await client.sessions.create({})).id).not.toBe((await client.sessions.create({})).id)
    await expect(client.sessions.create({}, { idempotencyKey: 'x'.repeat(256) })).rejects.toThrow(TypeError)
  })
})

describe('a request', () => {
  it('carries the token, and a key of its own where it acts, the same in each attempt', async () => {
    let failures = 1
    const { client, asked } = await answered(({ method }) =>
      method === 'POST' && failures-- > 0 ? { status: 500 } : { body: session },
    )
    await client.sessions.create()
    await client.sessions.create()
    await client.sessions.get('s1')
    const keys = asked().map(({ headers }) => headers['idempotency-key'])
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys[1]).toBe(keys[0])
    expect(keys[2]).not.toBe(keys[0])
    expect(keys[3]).toBeUndefined()
    expect(asked().every(({ headers }) => headers['authorization'] === 'Bearer svc_pat_one')).toBe(true)
  })

  it('that changes something is not repeated when it may have been acted on', async () => {
    const { client, asked } = await answered(() => ({ status: 500 }))
    expect(await faultOf(client.sessions.update('s1', { title: 'x' }))).toMatchObject({ code: 'http_500' })
    expect(asked()).toHaveLength(1)
  })

  it('that deletes is repeated, and a 404 then counts as success', async () => {
    let calls = 0
    const { client } = await answered((_asked, response) => {
      if (calls++ > 0) return refusal(404, 'not_found')
      response.destroy()
      return null
    })
    await client.sessions.delete('s1')
    expect(calls).toBe(2)
    expect(await faultOf(client.sessions.delete('s1'))).toMatchObject({ code: 'not_found' })
  })

  it('that cannot be sent has the same class of error', async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}`
    const client = createClient({ baseUrl, token: 'svc_pat_one', random: NO_JITTER })
    onTestFinished(() => client.close())
    const fault = await faultOf(client.health())
    expect(fault).toBeInstanceOf(ServiceError)
    expect(fault).toMatchObject({ code: 'unreachable', status: 0, operation: 'health' })
  })

  it('ends at its timeout, whatever it waits for', async () => {
    const { client } = await answered(() => null)
    expect(await faultOf(client.health({ timeout: 50 }))).toMatchObject({
      code: 'timeout',
      operation: 'health',
    })
    await expect(client.health({ timeout: 0 })).rejects.toThrow(TypeError)
  })

  it.each([
    ['the description of the service', () => null],
    ['its answer', () => ({ body: plainDocument })],
  ])('is aborted while it waits for %s', async (_what, describe) => {
    const server = await startServer(({ path }) => (path === '/v1/openapi.json' ? describe() : null))
    const client = createClient({ baseUrl: server.url, token: 'svc_pat_one' })
    onTestFinished(async () => {
      await client.close()
      await server[Symbol.asyncDispose]()
    })
    const abort = new AbortController()
    const faulty = faultOf(client.health({ signal: abort.signal }))
    await until(() => (server.asked.length > 0 ? true : undefined))
    const reason = new Error('enough')
    abort.abort(reason)
    expect(await faulty).toMatchObject({ code: 'aborted', cause: reason })
    expect(await faultOf(client.health({ signal: abort.signal }))).toMatchObject({ code: 'aborted' })
  })

  it('is aborted while others use all slots, or the rate is used up', async () => {
    const { client, asked } = await answered(() => null, { maxInFlight: 1 })
    const first = faultOf(client.health())
    await until(() => (asked().length === 1 ? true : undefined))
    const abort = new AbortController()
    const second = faultOf(client.sessions.get('s1', { signal: abort.signal }))
    setImmediate(() => abort.abort())
    expect(await second).toMatchObject({ code: 'aborted' })
    await client.close()
    expect(await first).toMatchObject({ code: 'stopped' })

    const limited = await answered(() => refusal(429, 'rate_limit_exceeded', { 'retry-after': '30' }))
    const signal = AbortSignal.timeout(50)
    expect(await faultOf(limited.client.health({ signal }))).toMatchObject({ code: 'aborted' })
  })

  it('leaves no listener on a signal that outlives it', async () => {
    const { client } = await answered(() => ({ body: session }))
    const { signal } = new AbortController()
    for (let count = 0; count < 20; count++) await client.sessions.get('s1', { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('with a body over the limit is refused before it is sent', async () => {
    const { client, asked } = await answered(() => ({ body: session }))
    const text = 'x'.repeat(1024 * 1024)
    expect(await faultOf(client.sessions.send('s1', text))).toMatchObject({
      code: 'request_too_large',
      status: 0,
    })
    expect((await client.sessions.create({ input: { text: 'x'.repeat(15 * 1024 * 1024) } })).id).toBe('s1')
    expect(await faultOf(client.sessions.create({ input: { text: text.repeat(16) } }))).toMatchObject({
      code: 'request_too_large',
    })
    expect(asked()).toHaveLength(1)
  })

  it('whose answer does not match the interface is malformed', async () => {
    const { client, server } = await answered(() => ({ body: { id: 's1', status: 'idle', title: 7 } }))
    expect(await faultOf(client.sessions.get('s1'))).toMatchObject({
      code: 'malformed_answer',
      status: 200,
      message: 'title of a session is not a text',
    })
    server.answer = () => ({ body: 'no JSON' })
    expect(await faultOf(client.sessions.get('s1'))).toMatchObject({ code: 'malformed_answer' })
  })

  it('accepts unknown fields and words in an answer, and missing fields', async () => {
    const { client } = await answered(() => ({ body: { id: 's1', status: 'dreaming', colour: 'blue' } }))
    expect(await client.sessions.get('s1')).toMatchObject({
      status: 'dreaming',
      colour: 'blue',
      title: null,
      metadata: {},
      required_actions: [],
      agent: { tools: [] },
      environment: { repo: { branch: null } },
    })
  })

  it('for a route that the description does not show fails with the option that gives it', async () => {
    const server = await startServer(() => ({ body: { paths: { '/v1/health': { get: {} } } } }))
    const bare = createClient({ baseUrl: server.url, token: 'svc_pat_one' })
    const repaired = createClient({
      baseUrl: server.url,
      token: 'svc_pat_one',
      routes: {
        message_path: '/v1/sessions/{session_id}/say',
        message_body: { words: '{{text}}' },
        cancel_path: '/v1/turns/{turn_id}/end',
        disconnect_path: '/v1/model-credentials/{credential_id}',
      },
    })
    onTestFinished(async () => {
      await bare.close()
      await repaired.close()
      await server[Symbol.asyncDispose]()
    })
    expect(await faultOf(bare.sessions.send('s1', 'x'))).toMatchObject({
      code: 'route_unknown',
      message: expect.stringMatching(/routes\.message_path/),
    })
    expect(await faultOf(bare.turns.cancel('s1', 't1'))).toMatchObject({
      message: expect.stringMatching(/ routes\.cancel_path/),
    })
    await repaired.sessions.send('s1', 'hello')
    await repaired.turns.cancel('s1', 't1')
    expect(server.asked.slice(-2)).toMatchObject([
      { path: '/v1/sessions/s1/say', body: '{"words":"hello"}' },
      { path: '/v1/turns/t1/end' },
    ])
  })
})

describe('a client', () => {
  it.each([
    ['baseUrl', { baseUrl: 'agents.example.com' }],
    ['baseUrl', { baseUrl: 'ftp://agents.example.com' }],
    ['token', { token: ' ' }],
    ['token', { token: 'svc_pat_…' }],
    ['routes', { routes: { cancel_path: 'https://elsewhere.example' } }],
    ['routes', { routes: { message_body: { text: 'no place' } } }],
  ])('is not made with an unusable %s', (what, options) => {
    const make = () => createClient({ baseUrl: 'http://127.0.0.1:1', token: 'svc_pat_one', ...options })
    expect(make).toThrow(TypeError)
    expect(make).toThrow(new RegExp(`^${what}`))
  })

  it('that is closed ends what is under way, and does nothing more', async () => {
    const { client, asked } = await answered(() => null)
    const faulty = faultOf(client.health())
    await until(() => (asked().length > 0 ? true : undefined))
    await client.close()
    expect(await faulty).toMatchObject({ code: 'stopped' })
    expect(await faultOf(client.health())).toMatchObject({ code: 'stopped' })
  })

  it('whose token cannot be had says so', async () => {
    const cause = new Error('the vault is sealed')
    const { client } = await answered(() => ({}), {
      token: () => {
        throw cause
      },
    })
    expect(await faultOf(client.health())).toMatchObject({ code: 'token_unavailable', cause })
  })

  it.each(['svc_pat_…', '', undefined])('sends nothing with the token %j of its function', async (token) => {
    const { client, asked } = await answered(() => ({}), { token: () => token as string })
    expect(await faultOf(client.health())).toMatchObject({
      code: 'token_unavailable',
      message: expect.stringContaining('did not return one'),
    })
    expect(asked()).toEqual([])
  })
})
