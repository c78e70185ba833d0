import { request } from 'undici'
import { describe, expect, it } from 'vitest'
import type { Scope } from '../../src/emulator/index.ts'
import { codeOf, messageOf, open, PROFILES, rowsOf, until, type Bench, type Fields } from './support.ts'

async function as(bench: Bench, scopes: Scope[]): Promise<void> {
  const reply = await bench.call('POST', '/_emulator/tokens', { scopes, days: 30 })
  bench.token = String(reply.body['token'])
}

describe.each(PROFILES)('tokens, scopes, rates and errors, profile %s', (profile) => {
  it('HLT-01 HLT-02 HLT-03 HLT-04 HLT-05 HLT-06 HLT-07 HLT-16 HLT-17 AUT-30 health reports the scopes of any valid token', async () => {
    const bench = await open(profile)
    await as(bench, ['artifacts:read'])
    const { status, body } = await bench.call('GET', '/v1/health')
    expect(status).toBe(200)
    expect(body).toEqual({
      object: 'health',
      status: 'ok',
      version: 'v1',
      scopes: ['artifacts:read'],
      usable: true,
      missing_scopes: [],
    })
  })

  it('AUT-12 AUT-13 AUT-14 ERR-19 a cli token is refused everywhere but by health, which says what to mint', async () => {
    const bench = await open(profile)
    await as(bench, ['cli'])
    for (const path of ['/v1', '/v1/sessions', '/v1/events', '/v1/webhooks']) {
      const reply = await bench.call('GET', path)
      expect([path, reply.status, codeOf(reply)]).toEqual([path, 403, 'permission_denied'])
    }
    expect((await bench.call('GET', '/v1/health')).body).toMatchObject({
      usable: false,
      missing_scopes: ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'],
    })
  })

  it('AUT-25 AUT-26 ERR-01 ERR-02 a token that is missing, unknown or revoked gives 401 at once', async () => {
    const bench = await open(profile)
    const { id, token } = bench.emulator.mintToken(['sessions:read'])
    bench.token = token
    expect((await bench.call('GET', '/v1/sessions')).status).toBe(200)
    expect((await bench.call('DELETE', `/_emulator/tokens/${id}`)).status).toBe(200)
    for (const given of [token, 'svc_pat_unknown', '']) {
      bench.token = given
      const reply = await bench.call('GET', '/v1/sessions')
      expect(reply.status).toBe(401)
      expect(reply.headers['www-authenticate']).toBe('Bearer realm=service')
      expect(reply.body).toEqual({
        error: {
          code: profile === 'a' ? 'unauthenticated' : 'invalid_token',
          message: expect.any(String),
          request_id: expect.stringMatching(/^req_/),
        },
      })
    }
    expect((await bench.call('DELETE', '/_emulator/tokens/tok_x')).status).toBe(404)
  })

  it('LIM-24 AUT-03 a token dies after the days that it was minted for', async () => {
    const bench = await open(profile)
    const { body } = await bench.call('POST', '/_emulator/tokens', { scopes: ['sessions:read'], days: 7 })
    expect(body['token']).toMatch(/^svc_pat_/)
    bench.token = String(body['token'])
    await bench.emulator.advance(7 * 86_400_000 - 60_000)
    expect((await bench.call('GET', '/v1/health')).status).toBe(200)
    await bench.emulator.advance(60_000)
    expect((await bench.call('GET', '/v1/health')).status).toBe(401)
    expect(
      (await bench.call('POST', '/_emulator/tokens', { scopes: ['sessions:read'], days: 8 })).status,
    ).toBe(400)
  })

  it('AUT-24 credentials:write beside the right to create is refused, or allowed, as the profile has it', async () => {
    const bench = await open(profile)
    const scopes = ['sessions:write', 'credentials:write']
    const reply = await bench.call('POST', '/_emulator/tokens', { scopes })
    expect(reply.status).toBe(profile === 'a' ? 400 : 201)
  })

  it('AUT-05 AUT-06 AUT-07 AUT-08 ERR-17 ERR-18 HLT-14 every operation holds to the scope that the description names', async () => {
    const bench = await open(profile, { limits: { readsBurst: 10_000, streamsPerToken: 100 } })
    const doc = (await bench.call('GET', '/v1/openapi.json')).body
    let tried = 0
    for (const [path, methods] of Object.entries(doc['paths'] as Record<string, Record<string, Fields>>)) {
      for (const [method, operation] of Object.entries(methods)) {
        const [required] = (operation['security'] as { accessToken: string[] }[]).flatMap(
          ({ accessToken }) => accessToken,
        )
        if (required === undefined) continue
        const others = (
          ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'] as Scope[]
        ).filter((scope) => scope !== required)
        bench.token = bench.emulator.mintToken(others).token
        const place = path.replaceAll(/\{\w+\}/g, 'x')
        const reply = await bench.call(method.toUpperCase(), place)
        expect([path, method, reply.status, codeOf(reply)]).toEqual([path, method, 403, 'permission_denied'])
        expect(messageOf(reply)).toContain(required)
        expect(operation['x-required-scope']).toBe(profile === 'a' ? required : undefined)
        tried += 1
      }
    }
    expect(tried).toBeGreaterThan(18)
  })

  it('AUT-17 AUT-18 AUT-19 AUT-20 AUT-36 a token for answering answers, and cannot send, cancel or delete', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await as(bench, ['sessions:read', 'tools:respond'])
    expect((await bench.send(id, 'x')).status).toBe(403)
    expect((await bench.call('POST', bench.path('cancel', id, String(action?.['turn_id'])))).status).toBe(403)
    expect((await bench.call('DELETE', `/v1/sessions/${id}`)).status).toBe(403)
    expect((await bench.answer(id, { call_id: action?.['call_id'], output: '' })).status).toBe(200)
  })

  it('LIM-34 LIM-35 LIM-36 LIM-39 LIM-40 LIM-42 LIM-43 LIM-44 LIM-45 ERR-32 ERR-34 two buckets refill continuously', async () => {
    const limits = { creationBurst: 2, creationPerSecond: 0.5, readsBurst: 100, readsPerSecond: 1 }
    const bench = await open(profile, { limits })
    const left = profile === 'a' ? 'x-ratelimit-remaining' : 'service-budget-left'
    const name = profile === 'a' ? 'x-ratelimit-bucket' : 'service-budget-name'
    const create = () => bench.call('POST', '/v1/sessions', {})
    const first = await create()
    expect([first.headers[left], first.headers[name]]).toEqual([
      '1',
      profile === 'a' ? 'sessions.create' : 'create',
    ])
    await create()
    for (let n = 0; n < 3; n++) {
      const refused = await create()
      expect([refused.status, codeOf(refused)]).toEqual([429, 'rate_limit_exceeded'])
      expect([refused.headers['retry-after'], refused.headers[left]]).toEqual(['2', '0'])
    }
    const read = await bench.call('GET', '/v1/sessions')
    expect([read.status, read.headers[left], read.headers[name]]).toEqual([
      200,
      '99',
      profile === 'a' ? 'reads' : 'read',
    ])
    const id = String(first.body['id'])
    const written = await bench.call('PATCH', `/v1/sessions/${id}`, { title: 'x' })
    expect(written.headers[left]).toBe(profile === 'a' ? '98' : '99')
    const missing = await bench.call('GET', '/v1/sessions/none')
    expect(missing.headers[left]).toBe(profile === 'a' ? '97' : '98')
    await bench.emulator.advance(2000)
    expect((await create()).status).toBe(201)
    expect((await create()).status).toBe(429)
  })

  it('LIM-42 a refusal at the session ceiling is not charged', async () => {
    const bench = await open(profile, { limits: { sessions: 0, creationBurst: 2 } })
    for (let n = 0; n < 5; n++)
      expect(codeOf(await bench.call('POST', '/v1/sessions', {}))).toBe('project_limit_exceeded')
  })

  it('GEN-28 GEN-29 GEN-30 GEN-31 the same idempotency value is answered the same and does nothing twice', async () => {
    const bench = await open(profile)
    const headers = { [bench.details.idempotency.header]: 'key-1' }
    const first = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    const again = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
    const id = String(first.body['id'])
    await Promise.all([1, 2, 3].map(() => bench.send(id, 'say hello', headers)))
    expect(bench.emulator.ledger().messages).toHaveLength(1)
    expect(bench.emulator.ledger().messages[0]?.idempotency_key).toBe('key-1')
    const other = await bench.call('POST', '/v1/sessions', { title: 'twice' }, headers)
    expect(other.status).toBe(profile === 'a' ? 409 : 201)
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
    await bench.emulator.advance(profile === 'a' ? 86_400_000 : 3_600_000)
    expect((await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)).body['id']).not.toBe(id)
  })

  it('a refused request leaves its idempotency value free', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const headers = { [bench.details.idempotency.header]: 'key-2' }
    expect(
      (await bench.call('POST', bench.path('message', id), bench.message('x', true), headers)).status,
    ).toBe(409)
    expect((await bench.send(id, 'say hello', headers)).status).toBe(202)
  })

  it('LIM-20 LIM-21 an idempotency value of 256 characters is refused, or not read, as the profile has it', async () => {
    const bench = await open(profile)
    const headers = (length: number) => ({ [bench.details.idempotency.header]: 'k'.repeat(length) })
    expect((await bench.call('POST', '/v1/sessions', {}, headers(255))).status).toBe(201)
    const long = await bench.call('POST', '/v1/sessions', {}, headers(256))
    expect(long.status).toBe(profile === 'a' ? 400 : 201)
  })

  it('LIM-01 LIM-02 ERR-08 a body over its limit is invalid_request', async () => {
    const bench = await open(profile, { limits: { createBodyBytes: 3_000_000 } })
    const id = await bench.session()
    const over = await bench.send(id, 'x'.repeat(1_048_576))
    expect([over.status, codeOf(over)]).toEqual([400, 'invalid_request'])
    expect((await bench.call('POST', '/v1/sessions', { title: 'x'.repeat(2_000_000) })).status).toBe(201)
    const large = await bench.call('POST', '/v1/sessions', { title: 'x'.repeat(3_000_000) })
    expect([large.status, codeOf(large)]).toEqual([400, 'invalid_request'])
  })

  it.each([
    ['no JSON', '{"title":', 'application/json'],
    ['another type', 'title=x', 'application/x-www-form-urlencoded'],
    ['an array', '[]', 'application/json'],
    ['a number', '7', 'application/json'],
    ['null', 'null', 'application/json'],
    ['__proto__', '{"__proto__":{"title":"x"}}', 'application/json'],
  ])('GEN-06 a body that is %s is invalid_request', async (_what, body, type) => {
    const bench = await open(profile)
    const reply = await bench.call('POST', '/v1/sessions', body, { 'content-type': type })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(bench.emulator.ledger().sessions).toEqual([])
  })

  it('ERR-20 ERR-21 GEN-11 what does not exist is not_found, and nothing carries CORS headers', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const places = [
      '/v1/sessions/none',
      '/v1/nothing',
      `/v1/sessions/${id}/artifacts/art_x/content`,
      '/else',
      `/v1/sessions/${'x'.repeat(400)}`,
    ]
    for (const path of places) {
      const reply = await bench.call('GET', path, undefined, { origin: 'https://app.example.com' })
      expect([path, reply.status, codeOf(reply)]).toEqual([path, 404, 'not_found'])
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    expect((await bench.call('OPTIONS', '/v1/sessions')).status).toBe(404)
    expect((await bench.call('HEAD', '/v1/health')).status).toBe(404)
  })

  it('AUT-27 ERR-36 ERR-37 ERR-38 ERR-45 ERR-47 faults give 503, 500, 502, both kinds of 401 and 429 for as many requests as asked', async () => {
    const bench = await open(profile)
    const get = () => bench.call('GET', '/v1/sessions')
    const cases = [
      ['directory_unavailable', 503, 'directory_unavailable'],
      ['server_errors', 500, 'internal_error'],
      ['rate_limit', 429, 'rate_limit_exceeded'],
      ['unauthorized', 401, profile === 'a' ? 'unauthenticated' : 'invalid_token'],
    ] as const
    for (const [fault, status, code] of cases) {
      expect((await bench.call('PUT', '/_emulator/faults', { [fault]: 2, retry_after: 7 })).status).toBe(200)
      const [one, two, three] = [await get(), await get(), await get()]
      expect([one?.status, codeOf(one), two?.status, three?.status]).toEqual([status, code, status, 200])
      expect(one?.headers['retry-after']).toBe(status === 503 || status === 429 ? '7' : undefined)
    }
    bench.emulator.faults.set({ bad_gateway: 1 })
    const html = await get()
    expect([html.status, html.headers['content-type']]).toEqual([502, 'text/html'])
    expect((await bench.call('GET', '/_emulator/faults')).body).toMatchObject({ bad_gateway: 0 })
  })

  it('a lost reply cuts the connection after the work was done, and the same value then gets the answer', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    bench.emulator.faults.set({ lose_message_replies: 1, lose_answer_replies: 1 })
    const headers = { [bench.details.idempotency.header]: 'key-3' }
    await expect(bench.send(id, 'call f {}', headers)).rejects.toThrow(
      /other side closed|ECONNRESET|socket hang up/,
    )
    expect((await bench.send(id, 'call f {}', headers)).status).toBe(202)
    const [action] = await bench.actions(id)
    await expect(bench.answer(id, { call_id: action?.['call_id'], output: 'x' })).rejects.toThrow(
      /other side closed|ECONNRESET|socket hang up/,
    )
    await bench.reach(id, 'idle')
    expect(bench.emulator.ledger()).toMatchObject({
      messages: [{}],
      answers: [{ outcome: expect.any(String) }],
    })
  })

  it('the Date of every answer follows the clock, hurried or skewed', async () => {
    const bench = await open(profile)
    await bench.call('POST', '/_emulator/clock', { advance: '2h' })
    const { headers } = await bench.call('GET', '/v1/health')
    expect(Math.abs(Date.parse(String(headers['date'])) - Date.now() - 7_200_000)).toBeLessThan(5000)
    bench.emulator.faults.set({ clock_skew_ms: -600_000 })
    const skewed = await bench.call('GET', '/v1/health')
    expect(Math.abs(Date.parse(String(skewed.headers['date'])) - Date.now() - 6_600_000)).toBeLessThan(5000)
    for (const advance of ['2 hours', '', '-5s', '9999d']) {
      expect((await bench.call('POST', '/_emulator/clock', { advance })).status).toBe(400)
    }
  })

  it('refuses a fault that it does not know, and says which it does', async () => {
    const bench = await open(profile)
    const reply = await bench.call('PUT', '/_emulator/faults', { stall_stream: true })
    expect(messageOf(reply)).toContain('"stall_streams"')
    expect((await bench.call('PUT', '/_emulator/faults', { delay_webhooks: 'soon' })).status).toBe(400)
  })

  it('MOD-01 MOD-13 MOD-14 MOD-15 MOD-16 MOD-17 MOD-19 MOD-20 lists connectors and the one connection, without its key', async () => {
    const bench = await open(profile)
    const { body, text } = await bench.call('GET', '/v1/model-credentials')
    expect(rowsOf(body)).toEqual([
      { object: 'model_credential', id: expect.any(String), label: 'Demo', model: 'demo' },
    ])
    expect(text).not.toContain('demo-key')
    const connectors = rowsOf((await bench.call('GET', '/v1/model-connectors')).body)
    expect(connectors.filter((one) => one['key_prefix'] === 'sk-').length).toBeGreaterThan(1)
    expect(connectors[0]).toMatchObject({ id: 'demo', default_model: 'demo' })
  })

  it('the ledger is served whole, or from a seq on', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    await bench.settle(id)
    const { body } = await bench.call('GET', '/_emulator/ledger')
    const live = bench.emulator.ledger()
    expect(body).toEqual({ ...live, now: expect.any(Number) })
    const rest = await bench.call('GET', '/_emulator/ledger?after_seq=3')
    expect((rest.body['events'] as unknown[]).length).toBe(live.events.length - 3)
  })

  it('survives requests that no client of the interface would send', async () => {
    const bench = await open(profile)
    const raw = (path: string) =>
      request(bench.emulator.baseUrl + path, { headers: { authorization: `Bearer ${bench.token}` } })
    for (const path of [
      '/v1/sessions/%E0%A4%A',
      '/v1/sessions?limit=1&limit=2',
      '/v1/sessions?metadata=nocolon',
      '/v1/sessions?__proto__=1',
    ]) {
      const response = await raw(path)
      expect([path, response.statusCode]).toEqual([path, 400])
      expect(await response.body.json()).toMatchObject({ error: { code: 'invalid_request' } })
    }
    await until(async () => ((await bench.call('GET', '/v1/health')).status === 200 ? true : undefined))
  })
})
