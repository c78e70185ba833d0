import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { descriptionOf } from '../emulator/described.ts'
import { listen } from '../emulator/listener.ts'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  until,
  type Bench,
  type Fields,
  type Reply,
} from '../emulator/support.ts'

/** Checks that a reply is this refusal and nothing else. */
function expectRefusal(reply: Reply, status: number, code: string): void {
  expect([reply.status, codeOf(reply)]).toEqual([status, code])
  expect(reply.body).toEqual({
    error: {
      code,
      message: expect.stringMatching(/./),
      request_id: expect.stringMatching(/^req_\w+$/),
    },
  })
}

const create = (bench: Bench, body: unknown = {}): Promise<Reply> => bench.call('POST', '/v1/sessions', body)

const UNREACHABLE = { type: 'mcp', name: 'tickets', url: 'https://mcp.example.com', required: true }

/** A session whose workspace is up. */
async function awake(bench: Bench): Promise<string> {
  const id = await bench.session()
  await bench.send(id, 'say hello')
  await bench.settle(id)
  return id
}

function file(bytes: number, path = 'a.txt'): Fields {
  return { type: 'inline', path, data: Buffer.alloc(bytes).toString('base64') }
}

/** Sends the head of a request whose body never ends, and keeps sending; what came back, and how it ended. */
async function uploadForEver(bench: Bench): Promise<{ text: string; cut: boolean }> {
  const { hostname, port } = new URL(bench.emulator.baseUrl)
  const socket = connect(Number(port), hostname)
  let text = ''
  let over = false
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    text += chunk.toString()
  })
  socket.on('close', () => {
    over = true
  })
  socket.write(
    [
      `POST ${bench.path('message', 'x')} HTTP/1.1`,
      'host: service',
      `authorization: Bearer ${bench.token}`,
      'content-type: application/json',
      'content-length: 1000000000',
      '',
      '{"text":"',
    ].join('\r\n'),
  )
  await until(() => {
    if (!over) socket.write('x'.repeat(10_000))
    return over ? true : undefined
  })
  return { text, cut: over }
}

describe.each(PROFILES)('errors, profile %s', (profile) => {
  it('ERR-01 ERR-02 every error has a code, a message and a request_id of its own', async () => {
    const bench = await open(profile)
    const replies = [
      await bench.call('GET', '/v1/nothing'),
      await bench.call('GET', '/v1/sessions?x=1'),
      await bench.call('GET', '/v1/sessions/%E0%A4%A'),
      await bench.call('POST', '/v1/sessions', '{'),
    ]
    bench.token = 'none'
    replies.push(await bench.call('GET', '/v1/sessions'))
    const ids = replies.map((reply) => {
      expectRefusal(reply, reply.status, codeOf(reply))
      return (reply.body['error'] as Fields)['request_id']
    })
    expect(new Set(ids).size).toBe(replies.length)
  })

  it('ERR-03 ERR-04 ERR-05 ERR-06 ERR-07 ERR-09 ERR-11 ERR-48 what cannot be read is 400 invalid_request, without data', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const requests: [string, string, unknown?][] = [
      ['POST', '/v1/sessions', { colour: 'red' }],
      ['GET', '/v1/sessions?colour=red'],
      ['POST', '/v1/sessions', { title: 7 }],
      ['PATCH', `/v1/sessions/${id}`, { agent: { approval_mode: 'per_step' } }],
      ['PATCH', `/v1/sessions/${id}`, {}],
      ['PATCH', `/v1/sessions/${id}`, { agent: {} }],
      ['GET', '/v1/sessions?limit=101'],
      ['GET', '/v1/sessions?order=up'],
      ['POST', '/v1/sessions', { metadata: { a: 1 } }],
    ]
    for (const [method, path, body] of requests) {
      const reply = await bench.call(method, path, body)
      expectRefusal(reply, 400, 'invalid_request')
      expect(reply.text).not.toContain('"data"')
    }
    expect(
      messageOf(await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { approval_mode: 'x' } })),
    ).toContain('approval_mode')
  })

  it('ERR-08 ERR-49 ERR-50 a body over its limit is 400 while the client still uploads, and a client that writes on is cut off', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expectRefusal(await bench.send(id, 'x'.repeat(1_048_576)), 400, 'invalid_request')
    const { text, cut } = await uploadForEver(bench)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).toContain('invalid_request')
    // What a client that never looks at the answer calls a transport error.
    expect(cut).toBe(true)
  })

  it('ERR-10 a file over a ceiling is invalid_request, and nothing was written or created', async () => {
    const bench = await open(profile, { limits: { fileBytes: 1000 } })
    const id = await awake(bench)
    const over = await bench.call('POST', `/v1/sessions/${id}/files`, {
      files: [file(10), file(1001, 'b.txt')],
    })
    expectRefusal(over, 400, 'invalid_request')
    expectRefusal(await create(bench, { environment: { files: [file(1001)] } }), 400, 'invalid_request')
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    expect((await bench.call('GET', `/v1/sessions/${id}/files`)).body['data']).toEqual([])
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
  })

  it('ERR-12 ERR-13 a model that is not connected and a foreign credential are named', async () => {
    const bench = await open(profile)
    const foreign = await open(profile)
    const key = { key: 'nw-1', provider: 'northwind' }
    const credential = String((await foreign.call('POST', '/v1/model-credentials', key)).body['id'])
    for (const [agent, named] of [
      [{ model: 'northwind-large' }, 'northwind-large'],
      [{ model_credential_id: credential }, credential],
    ] as const) {
      const reply = await create(bench, { agent })
      expectRefusal(reply, 400, 'invalid_request')
      expect(messageOf(reply)).toContain(named)
    }
  })

  it('ERR-14 a read-back sent as it is, redacted included, is refused', async () => {
    const bench = await open(profile)
    const tool = { type: 'mcp', name: 'm', url: 'https://mcp.example.com', headers: { token: 'secret' } }
    const id = await bench.session({ agent: { tools: [tool] } })
    const { body, text } = await bench.call('GET', `/v1/sessions/${id}/tools`)
    expect(text).not.toContain('secret')
    const reply = await bench.call('PUT', `/v1/sessions/${id}/tools`, { tools: body['tools'] })
    expectRefusal(reply, 400, 'invalid_request')
    expect(messageOf(reply)).toContain('redacted')
  })

  it('ERR-15 ERR-16 an unreachable required MCP server is invalid_request on the first call for the workspace, and on every other', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ unreachable_mcp: ['tickets'] })
    const id = await bench.session({ agent: { tools: [UNREACHABLE] } })
    for (const wait of [0, 1000, 3_600_000]) {
      await bench.emulator.advance(wait)
      const reply = await bench.call('POST', `/v1/sessions/${id}/files`, { files: [file(1)] })
      expectRefusal(reply, 400, 'invalid_request')
      expect(messageOf(reply)).toMatch(/tickets.*connection refused/)
      expect(reply.headers['retry-after']).toBe(undefined)
    }
  })

  it('ERR-17 ERR-18 ERR-19 a token that lacks the scope is 403 permission_denied, and the message names the scope', async () => {
    const bench = await open(profile)
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    const reply = await create(bench)
    expectRefusal(reply, 403, 'permission_denied')
    expect(messageOf(reply)).toContain('sessions:write')
    bench.token = bench.emulator.mintToken(['cli']).token
    expectRefusal(await bench.call('GET', '/v1/sessions'), 403, 'permission_denied')
  })

  it('ERR-20 ERR-21 what does not exist is 404 not_found', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (const path of [
      '/v1/sessions/none',
      '/v1/nothing',
      `/v1/sessions/${id}/artifacts/art_x/content`,
      '/v1/agents/none',
      '/else',
      `/v1/sessions/${'x'.repeat(400)}`,
    ])
      expectRefusal(await bench.call('GET', path), 404, 'not_found')
    expectRefusal(await bench.call('DELETE', '/v1/webhooks/none'), 404, 'not_found')
    expectRefusal(await bench.send('none', 'say hello'), 404, 'not_found')
    expect((await bench.call('HEAD', '/v1/health')).status).toBe(404)
  })

  it('ERR-22 ERR-23 ERR-24 ERR-25 a twin, steering nothing and files for a workspace that is not ready are 409 conflict', async () => {
    const bench = await open(profile, { limits: { bridgeRestartMs: 5000 } })
    const hook = { url: 'https://app.example.com/hook' }
    await bench.call('POST', '/v1/webhooks', hook)
    expectRefusal(await bench.call('POST', '/v1/webhooks', hook), 409, 'conflict')
    const id = await awake(bench)
    expectRefusal(await bench.steer(id, 'say more'), 409, 'conflict')
    await bench.call('PUT', `/v1/sessions/${id}/tools`, { tools: [] })
    const write = () => bench.call('POST', `/v1/sessions/${id}/files`, { files: [file(1)] })
    expectRefusal(await write(), 409, 'conflict')
    // Nothing was written, and trying again later is all it takes.
    await bench.emulator.advance(5000)
    expect((await write()).status).toBeLessThan(300)
  })

  it('ERR-26 ERR-27 the sixth message that would wait is queue_full, with the status that the profile gives', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'hang')
    for (let n = 1; n <= 5; n++) expect((await bench.send(id, 'say hello')).status).toBe(202)
    expectRefusal(await bench.send(id, 'say hello'), profile === 'a' ? 409 : 429, 'queue_full')
  })

  it('ERR-28 ERR-29 ERR-30 the session ceiling is 429 project_limit_exceeded, which no wait clears', async () => {
    const bench = await open(profile, { limits: { sessions: 2 } })
    const first = await bench.session()
    await bench.session()
    for (const wait of [0, 60_000, 86_400_000]) {
      await bench.emulator.advance(wait)
      const reply = await create(bench)
      expectRefusal(reply, 429, 'project_limit_exceeded')
      expect(reply.headers['retry-after']).toBe(undefined)
    }
    expectRefusal(await bench.call('POST', `/v1/sessions/${first}/fork`), 429, 'project_limit_exceeded')
    await bench.call('DELETE', `/v1/sessions/${first}`)
    expect((await create(bench)).status).toBe(201)
  })

  it('ERR-31 ERR-32 ERR-33 ERR-34 ERR-35 ERR-47 the rate and the stream ceiling are 429 rate_limit_exceeded, which the named wait clears', async () => {
    const limits = { creationBurst: 1, creationPerSecond: 0.01, sessions: 2, streamsPerToken: 1 }
    const bench = await open(profile, { limits })
    await create(bench)
    const fast = await create(bench)
    expectRefusal(fast, 429, 'rate_limit_exceeded')
    const wait = Number(fast.headers['retry-after'])
    expect(wait).toBeGreaterThan(90)
    await bench.emulator.advance(wait * 1000)
    expect((await create(bench)).status).toBe(201)
    await bench.emulator.advance(100_000)
    // The same status, and only the code says that waiting is of no use.
    expectRefusal(await create(bench), 429, 'project_limit_exceeded')
    const stream = await listen(bench)
    const refused = await bench.call('GET', '/v1/events')
    expectRefusal(refused, 429, 'rate_limit_exceeded')
    expect(refused.headers['retry-after']).toMatch(/^\d+$/)
    stream.leave()
    await until(() => (bench.emulator.openStreams() === 0 ? true : undefined))
    await bench.emulator.advance(Number(refused.headers['retry-after']) * 1000)
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('ERR-36 ERR-37 ERR-38 an unreachable directory is 503 directory_unavailable with Retry-After, for every token', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ directory_unavailable: 3, retry_after: 7 })
    for (const token of [bench.emulator.token, 'svc_pat_unknown', '']) {
      bench.token = token
      const reply = await bench.call('GET', '/v1/sessions')
      expectRefusal(reply, 503, 'directory_unavailable')
      expect([reply.headers['retry-after'], reply.headers['www-authenticate']]).toEqual(['7', undefined])
    }
    expect((await bench.call('GET', '/v1/sessions')).status).toBe(401)
  })

  it('ERR-39 ERR-40 ERR-41 ERR-42 ERR-43 ERR-44 a runtime older than the feature is bridge_incompatible, and a new session is the way out', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ old_runtimes: 1 })
    const old = await bench.session()
    const status = profile === 'a' ? 409 : 422
    const requests: [string, string, string, unknown][] = [
      ['instructions', 'PATCH', '', { agent: { instructions: 'Be brief.' } }],
      ['host functions', 'PUT', '/tools', { tools: [{ type: 'function', name: 'f' }] }],
      ['session tools', 'PUT', '/tools', { tools: [] }],
    ]
    for (const [feature, method, part, body] of requests) {
      const reply = await bench.call(method, `/v1/sessions/${old}${part}`, body)
      expectRefusal(reply, status, 'bridge_incompatible')
      expect(messageOf(reply)).toContain(feature)
    }
    expect((await bench.call('PATCH', `/v1/sessions/${old}`, { title: 'x' })).status).toBe(200)
    const id = await bench.session()
    for (const [, method, part, body] of requests)
      expect((await bench.call(method, `/v1/sessions/${id}${part}`, body)).status).toBe(200)
  })

  it('ERR-45 ERR-46 a failure of the service is internal_error with a 5xx status and a request_id to report', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ server_errors: 1, fail_operations: [{ status: 503, times: 1 }] })
    expectRefusal(await bench.call('GET', '/v1/health'), 500, 'internal_error')
    expectRefusal(await bench.call('GET', '/v1/health'), 503, 'internal_error')
    expect((await bench.call('GET', '/v1/health')).status).toBe(200)
  })

  it('ERR-51 ERR-52 the description lists every code there is, the one of a 401, which the profile names, among them', async () => {
    const bench = await open(profile)
    bench.token = 'none'
    const rejected = profile === 'a' ? 'unauthenticated' : 'invalid_token'
    expectRefusal(await bench.call('GET', '/v1/sessions'), 401, rejected)
    const { document } = await descriptionOf(profile)
    const { schemas } = document['components'] as { schemas: { Error: Fields } }
    const { error } = schemas.Error['properties'] as { error: { properties: { code: { enum: string[] } } } }
    expect(error.properties.code.enum.toSorted()).toEqual(
      [
        'bridge_incompatible',
        'conflict',
        'directory_unavailable',
        'internal_error',
        'invalid_request',
        'not_found',
        'permission_denied',
        'project_limit_exceeded',
        'queue_full',
        'rate_limit_exceeded',
        rejected,
      ].toSorted(),
    )
  })

  it('ERR-06 survives requests that no client of the interface would send', async () => {
    const bench = await open(profile)
    for (const path of [
      '/v1/sessions/%E0%A4%A',
      '/v1/sessions?limit=1&limit=2',
      '/v1/sessions?metadata=nocolon',
      '/v1/sessions?__proto__=1',
    ])
      expectRefusal(await bench.call('GET', path), 400, 'invalid_request')
    expect((await bench.call('GET', '/v1/health')).status).toBe(200)
  })
})
