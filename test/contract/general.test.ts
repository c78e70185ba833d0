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
} from '../emulator/support.ts'
import { operationsOf, withIds } from './description.ts'

/** Every resource that one session, worked with once, leaves behind. */
async function resources(bench: Bench): Promise<Fields[]> {
  const id = await bench.session({ agent: { tools: [{ type: 'function', name: 'f' }] } })
  await bench.send(id, 'say hello\nwrite outputs/a.txt hi')
  const turn = await bench.settle(id)
  const saved = await bench.call('POST', bench.details.paths.saveAgent, { name: 'saved' })
  await bench.call('POST', '/v1/webhooks', { url: 'https://app.example.com/hook' })
  await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
  const places = [
    '/v1/health',
    '/v1/sessions',
    `/v1/sessions/${id}`,
    `/v1/sessions/${id}/turns`,
    bench.path('turn', id, String(turn['id'])),
    `/v1/sessions/${id}/items`,
    `/v1/sessions/${id}/tools`,
    `/v1/sessions/${id}/files`,
    `/v1/sessions/${id}/files/content?path=outputs/a.txt`,
    bench.path('artifacts', id),
    '/v1/webhooks',
    '/v1/model-connectors',
    '/v1/model-credentials',
    '/v1/agents',
    `/v1/agents/${String(saved.body['id'])}`,
    '/v1/environment-profiles',
  ]
  const read: Fields[] = []
  for (const path of places) {
    const reply = await bench.call('GET', path)
    expect([path, reply.status]).toEqual([path, 200])
    read.push(reply.body)
  }
  return read
}

function timesIn(value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return value.flatMap(timesIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]): [string, unknown][] =>
    key.endsWith('_at') ? [[key, field]] : timesIn(field),
  )
}

describe.each(PROFILES)('the service in general, profile %s', (profile) => {
  it('GEN-01 each session has a workspace of its own', async () => {
    const bench = await open(profile)
    const [one, other] = [await bench.session(), await bench.session()]
    await bench.send(one, 'write mine.txt hello')
    await bench.send(other, 'say hello')
    await Promise.all([bench.settle(one), bench.settle(other)])
    const filesOf = async (id: string): Promise<unknown[]> => {
      await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
      return rowsOf((await bench.call('GET', `/v1/sessions/${id}/files`)).body).map(({ path }) => path)
    }
    expect([await filesOf(one), await filesOf(other)]).toEqual([['mine.txt'], []])
  })

  it('GEN-02 GEN-03 an agent works in turns, one for each message, with commands, files, services, a preview and commits', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(
      id,
      [
        'shell cat README.md',
        'write src/app.ts code',
        'shell npm start',
        'preview 8080',
        'shell git commit -m "Add the app"',
      ].join('\n'),
    )
    await bench.settle(id)
    await bench.send(id, 'say done')
    await until(async () => ((await bench.turns(id)).length === 2 ? true : undefined))
    const events = bench.events(id)
    expect(events.filter((type) => type === 'agent.tool_call').length).toBeGreaterThanOrEqual(3)
    expect(events).toContain('file.changed')
    expect(events).toContain('preview.ready')
    const commands = (await bench.items(id)).map((item) => JSON.stringify(item))
    expect(commands.some((text) => text.includes('git commit'))).toBe(true)
  })

  it('GEN-04 GEN-05 every path is relative to the base address and under /v1, and nothing else of the service is anywhere', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    expect(document['servers']).toEqual([{ url: '/' }])
    for (const { path } of operationsOf(document)) expect(path).toMatch(/^\/v1(\/|$)/)
    for (const path of ['/', '/v2/sessions', '/sessions', '/health', '/V1/sessions', '/openapi.json'])
      expect([path, (await bench.call('GET', path)).status]).toEqual([path, 404])
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

  it('GEN-07 GEN-08 GEN-09 GEN-10 answers JSON, but for streams, artifact bytes and the archive', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    await bench.settle(id)
    const typeOf = async (path: string): Promise<string> =>
      String((await bench.call('GET', path)).headers['content-type'])
    for (const path of ['/v1', '/v1/openapi.json', `/v1/sessions/${id}`, '/v1/nothing'])
      expect(await typeOf(path)).toBe('application/json; charset=utf-8')
    expect((await listen(bench)).response.headers['content-type']).toBe('text/event-stream')
    const [artifact] = rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    const bytes = await bench.call('GET', `/v1/sessions/${id}/artifacts/${String(artifact?.['id'])}/content`)
    expect(bytes.text).toBe('hi')
    expect(bytes.headers['content-type']).not.toContain('json')
    expect(await typeOf(`/v1/sessions/${id}/artifacts/archive`)).toBe('application/x-tar')
  })

  it('GEN-11 GEN-12 nothing carries CORS headers, so no page of a browser reads an answer', async () => {
    const bench = await open(profile)
    const origin = { origin: 'https://app.example.com', 'access-control-request-method': 'GET' }
    const replies = [
      await bench.call('OPTIONS', '/v1/sessions', undefined, origin),
      await bench.call('GET', '/v1/sessions', undefined, origin),
      await bench.call('POST', '/v1/sessions', {}, origin),
      await bench.call('GET', '/v1/nothing', undefined, origin),
    ]
    expect(replies.map(({ status }) => status)).toEqual([404, 200, 201, 404])
    const stream = await listen(bench, '/v1/events', origin)
    for (const { headers } of [...replies, stream.response])
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('GEN-13 no session works without a model connection', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const [credential] = rowsOf((await bench.call('GET', '/v1/model-credentials')).body)
    const { method, path } = bench.details.disconnect
    await bench.call(method, path.replace('{credential_id}', String(credential?.['id'])))
    expect(codeOf(await bench.call('POST', '/v1/sessions', {}))).toBe('invalid_request')
    await bench.send(id, 'say hello')
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
  })

  it('GEN-14 the right to create sessions does not include connecting a model', async () => {
    const bench = await open(profile)
    bench.token = bench.emulator.mintToken(['sessions:write', 'sessions:read']).token
    await bench.session()
    const reply = await bench.call('POST', '/v1/model-credentials', { key: 'demo-1' })
    expect([reply.status, codeOf(reply)]).toEqual([403, 'permission_denied'])
    expect(messageOf(reply)).toContain('credentials:write')
  })

  it('GEN-15 the agent calls a function that the client declared and reads its output', async () => {
    const bench = await open(profile)
    const id = await bench.session({ agent: { tools: [{ type: 'function', name: 'lookup_order' }] } })
    await bench.send(id, 'call lookup_order {"order_id":"42"}\nsay it is {{last}}')
    const [action] = await bench.actions(id)
    expect(action).toMatchObject({ name: 'lookup_order', arguments: { order_id: '42' } })
    await bench.answer(id, { call_id: action?.['call_id'], output: 'shipped' })
    await bench.settle(id)
    expect((await bench.items(id)).map(({ content }) => content)).toContain('it is shipped')
  })

  it('GEN-16 turns connect to the MCP servers of their session: a reachable one makes no event, an unreachable one does', async () => {
    const bench = await open(profile)
    const mcp = (name: string, host: string) => ({ type: 'mcp', name, url: `https://${host}/mcp` })
    const id = await bench.session({
      agent: { tools: [mcp('tickets', 'mcp.example.com'), mcp('wiki', 'wiki.invalid')] },
    })
    await bench.send(id, 'say hello')
    expect((await bench.settle(id))['status']).toBe('completed')
    const entries = (await bench.items(id)).filter(({ type }) => type === 'mcp_unavailable')
    expect(entries).toHaveLength(1)
    expect(JSON.stringify(entries)).toContain('wiki')
  })

  it('GEN-17 GEN-18 stream, webhooks and polling each report the end of the same turn', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['turn.completed'] })
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    const polled = await bench.settle(id)
    expect(polled['status']).toBe('completed')
    const streamed = await stream.hear('turn.ended')
    expect(JSON.stringify(streamed.data)).toContain(String(polled['id']))
    await until(() => (receiver.received.length === 1 ? true : undefined))
    expect(receiver.received[0]?.raw).toContain(String(polled['id']))
  })

  it('GEN-19 an id is a name and nothing else: none is taken apart, and no other spelling of it is known', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    const turn = String((await bench.settle(id))['id'])
    for (const other of [id.toUpperCase(), id.replaceAll('-', ''), `${id}0`, `{${id}}`])
      expect((await bench.call('GET', `/v1/sessions/${encodeURIComponent(other)}`)).status).toBe(404)
    for (const other of [turn.replace('turn_', ''), turn.toUpperCase()])
      expect((await bench.call('GET', bench.path('turn', id, other))).status).toBe(404)
    const ids = await Promise.all(Array.from({ length: 20 }, () => bench.session()))
    expect(new Set([id, ...ids]).size).toBe(21)
  })

  it('GEN-20 GEN-21 every time is a number of milliseconds, and every resource names its shape', async () => {
    const startAt = 1_900_000_000_000
    const bench = await open(profile, { startAt })
    const read = await resources(bench)
    const times = timesIn(read)
    expect(times.length).toBeGreaterThan(10)
    for (const [name, at] of times) {
      if (at === null) continue
      expect([name, typeof at]).toEqual([name, 'number'])
      expect(Math.abs(Number(at) - startAt)).toBeLessThan(60_000)
    }
    for (const resource of read) {
      expect(typeof resource['object']).toBe('string')
      const rows = resource['object'] === 'list' ? rowsOf(resource) : []
      for (const row of rows) expect(typeof row['object']).toBe('string')
    }
  })

  it('GEN-22 GEN-23 a list has data, has_more and last_id, and after=last_id asks for the next page', async () => {
    const bench = await open(profile)
    const lists = (await resources(bench)).filter(({ object }) => object === 'list')
    expect(lists.length).toBeGreaterThan(8)
    for (const list of lists.filter((one) => !('captured_at' in one))) {
      expect(list).toMatchObject({ data: expect.any(Array), has_more: false })
      expect(list['last_id']).toBe(rowsOf(list).at(-1)?.['id'])
    }
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push(await bench.session())
    const seen: unknown[] = []
    let page = (await bench.call('GET', '/v1/sessions?limit=2&order=desc')).body
    seen.push(...rowsOf(page))
    while (page['has_more'] === true) {
      page = (await bench.call('GET', `/v1/sessions?limit=2&order=desc&after=${String(page['last_id'])}`))
        .body
      seen.push(...rowsOf(page))
    }
    expect(seen.map((row) => (row as Fields)['id']).slice(0, 5)).toEqual(ids.toReversed())
    expect(seen).toHaveLength(6)
  })

  it('GEN-22 an empty page has an empty last_id, or none, as the profile has it', async () => {
    const bench = await open(profile)
    const { body } = await bench.call('GET', '/v1/sessions')
    expect(body).toEqual({ object: 'list', data: [], has_more: false, last_id: profile === 'a' ? '' : null })
  })

  it('GEN-24 GEN-25 GEN-26 an unknown field or parameter is refused with the nearest and the accepted names, everywhere', async () => {
    const bench = await open(profile, { limits: { readsBurst: 10_000 } })
    const { document } = await descriptionOf(profile)
    const tried = { fields: 0, parameters: 0 }
    for (const { method, path, operation } of operationsOf(document)) {
      const accepted = rowsOf(operation['parameters'] ?? []).filter((one) => one['in'] === 'query')
      const reply = await bench.call(method, `${withIds(path)}?unknown_thing=1`)
      // A stream or an action is refused for its parameter before anything is looked up.
      expect([path, method, reply.status, codeOf(reply)]).toEqual([path, method, 400, 'invalid_request'])
      expect(messageOf(reply)).toContain('unknown query parameter "unknown_thing"')
      for (const { name } of accepted) expect(messageOf(reply)).toContain(String(name))
      tried.parameters += 1
      const body = operation['requestBody'] as { content: Record<string, { schema: Fields }> } | undefined
      const fields = body?.content['application/json']?.schema['properties'] as Fields | undefined
      if (fields === undefined) continue
      const refused = await bench.call(method, withIds(path), { unknown_thing: 1 })
      expect([path, method, refused.status]).toEqual([path, method, 400])
      expect(messageOf(refused)).toContain('unknown field "unknown_thing"')
      for (const name of Object.keys(fields)) expect(messageOf(refused)).toContain(name)
      tried.fields += 1
    }
    expect(tried.parameters).toBeGreaterThan(35)
    expect(tried.fields).toBeGreaterThan(8)
    const near = await bench.call('POST', '/v1/sessions', { titel: 'x' })
    expect(messageOf(near)).toBe(
      'unknown field "titel"; did you mean "title"? (accepted: agent, title, metadata, environment, input, text)',
    )
    expect(messageOf(await bench.call('GET', '/v1/sessions?limits=3'))).toContain('did you mean "limit"?')
    const inside = await bench.call('POST', '/v1/sessions', { agent: { instruction: 'x' } })
    expect(messageOf(inside)).toContain('unknown field "instruction" in agent; did you mean "instructions"?')
  })

  it('GEN-27 what was set is read back', async () => {
    const bench = await open(profile)
    const tools = [
      { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, timeout_seconds: 30 },
      { type: 'mcp', name: 'm', url: 'https://mcp.example.com', allowed_tools: ['x'], required: false },
    ]
    const agent = {
      instructions: 'Be brief.',
      approval_mode: 'read_only',
      permission_rules: [{ decision: 'deny', tool: 'shell' }],
      tools,
    }
    const id = await bench.session({ title: 'T', metadata: { a: 'b' }, agent, text: { verbosity: 'low' } })
    expect(await bench.read(id)).toMatchObject({ title: 'T', metadata: { a: 'b' }, agent })
    const { body } = await bench.call('GET', `/v1/sessions/${id}/tools`)
    expect(body).toMatchObject({ tools, text: { verbosity: 'low' } })
    const changed = { title: 'U', metadata: { c: 'd' }, agent: { instructions: 'Be long.' } }
    await bench.call('PATCH', `/v1/sessions/${id}`, changed)
    expect(await bench.read(id)).toMatchObject(changed)
    const hook = { url: 'https://app.example.com/hook', events: ['turn.failed'] }
    await bench.call('POST', '/v1/webhooks', hook)
    expect(rowsOf((await bench.call('GET', '/v1/webhooks')).body)).toMatchObject([hook])
  })

  it('GEN-28 GEN-29 every operation that creates or acts takes the idempotency header', async () => {
    const { document } = await descriptionOf(profile)
    const { details } = await open(profile)
    const posts = operationsOf(document).filter(({ method }) => method === 'POST')
    expect(posts.length).toBeGreaterThan(8)
    for (const { path, operation } of posts) {
      const names = rowsOf(operation['parameters']).map(({ name }) => name)
      expect([path, names.includes(details.idempotency.header)]).toEqual([path, true])
    }
  })

  it('GEN-30 GEN-31 GEN-32 the same idempotency value is answered the same and does nothing twice', async () => {
    const bench = await open(profile)
    const header = profile === 'a' ? 'Idempotency-Key' : 'X-Request-Key'
    expect(bench.details.idempotency.header).toBe(header)
    const headers = { [header]: 'key-1' }
    const first = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    const again = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
    const id = String(first.body['id'])
    await Promise.all([1, 2, 3].map(() => bench.send(id, 'say hello', headers)))
    expect(bench.emulator.ledger().messages).toHaveLength(1)
    expect(bench.emulator.ledger().messages[0]?.idempotency_key).toBe('key-1')
    const creations: [string, unknown][] = [
      [`/v1/sessions/${id}/fork`, undefined],
      ['/v1/webhooks', { url: 'https://app.example.com/hook' }],
      [bench.details.paths.saveAgent, { name: 'saved' }],
      ['/v1/model-credentials', { key: 'nw-123' }],
    ]
    for (const [path, body] of creations) {
      const [one, two] = [
        await bench.call('POST', path, body, headers),
        await bench.call('POST', path, body, headers),
      ]
      expect([path, one.status, two.body]).toEqual([path, 201, one.body])
    }
    expect(bench.emulator.ledger().sessions).toHaveLength(2)
    expect(bench.emulator.ledger().subscriptions).toHaveLength(1)
    await bench.send(id, 'hang')
    const turn = await until(async () => (await bench.turns(id)).find(({ status }) => status === 'working'))
    const cancel = bench.path('cancel', id, String(turn['id']))
    expect((await bench.call('POST', cancel, undefined, headers)).status).toBe(202)
    expect((await bench.call('POST', cancel, undefined, headers)).status).toBe(202)
    expect((await bench.call('POST', cancel)).status).toBe(409)
  })

  it('GEN-30 the same value with another body is a conflict, or the first answer, for as long as the profile keeps it', async () => {
    const bench = await open(profile)
    const headers = { [bench.details.idempotency.header]: 'key-1' }
    const first = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    const other = await bench.call('POST', '/v1/sessions', { title: 'twice' }, headers)
    expect(other.status).toBe(profile === 'a' ? 409 : 201)
    expect(bench.emulator.ledger().sessions).toHaveLength(1)
    await bench.emulator.advance((profile === 'a' ? 86_400_000 : 3_600_000) - 60_000)
    const kept = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    expect(kept.body['id']).toBe(first.body['id'])
    await bench.emulator.advance(60_000)
    const anew = await bench.call('POST', '/v1/sessions', { title: 'once' }, headers)
    expect(anew.body['id']).not.toBe(first.body['id'])
  })

  it('GEN-31 a refused request leaves its idempotency value free', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const headers = { [bench.details.idempotency.header]: 'key-2' }
    expect(
      (await bench.call('POST', bench.path('message', id), bench.message('x', true), headers)).status,
    ).toBe(409)
    expect((await bench.send(id, 'say hello', headers)).status).toBe(202)
  })
})
