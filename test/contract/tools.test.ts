import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, rowsOf, type Bench, type Fields } from '../emulator/support.ts'
import { doing, outputs, payloads, said, talk } from './transcript.ts'

const place = (id: string): string => `/v1/sessions/${id}/tools`
const NETWORKED = ['web_search', 'web_fetch', 'image_search', 'browse', 'browser_act', 'screenshot']

const inline = (path: string) => ({ type: 'inline', path, data: Buffer.from('x').toString('base64') })

/** What the agent gets from each of these tools, used one after another. */
async function using(bench: Bench, agent: Fields): Promise<unknown[]> {
  const id = await bench.session({ agent })
  expect((await talk(bench, id))['status']).toBe('completed')
  return outputs(bench, id)
}

const use = (...tools: string[]) => tools.map((tool) => ({ use: { tool } }))

describe.each(PROFILES)('tool entries, profile %s', (profile) => {
  it('TOO-01 TOO-02 TOO-03 TOO-04 TOO-05 TOO-06 TOO-07 TOO-08 TOO-09 TOO-10 TOO-12 TOO-14 TOO-15 TOO-16 TOO-20 TOO-21 TOO-22 takes every type with all its fields', async () => {
    const bench = await open(profile)
    const tools = [
      { type: 'mcp', name: 'far', url: 'https://far.example', allowed_tools: ['a'], required: true },
      { type: 'mcp', name: 'near', command: 'server', args: ['-v'], required: false },
      {
        type: 'function',
        name: 'f',
        description: 'Finds',
        parameters: { type: 'object' },
        timeout_seconds: 60,
      },
      ...NETWORKED.map((type) => ({ type, name: `my_${type}` })),
    ]
    const id = await bench.session({ agent: { tools } })
    expect(((await bench.read(id))['agent'] as Fields)['tools']).toEqual(tools)
  })

  it('TOO-16 TOO-17 TOO-18 TOO-19 TOO-28 TOO-29 shows no secret of a server, but its name, which no client may send', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const tools = [
      { type: 'mcp', name: 'far', url: 'https://t.example', headers: { Authorization: 'Bearer hidden' } },
      { type: 'mcp', name: 'near', command: 'server', env: { KEY: 'hidden' } },
    ]
    const put = await bench.call('PUT', place(id), { tools })
    expect(put.body['tools']).toEqual([
      {
        type: 'mcp',
        name: 'far',
        url: 'https://t.example',
        required: false,
        redacted: ['headers.Authorization'],
      },
      { type: 'mcp', name: 'near', command: 'server', required: false, redacted: ['env.KEY'] },
    ])
    const read = await bench.call('GET', place(id))
    const session = await bench.call('GET', `/v1/sessions/${id}`)
    const list = await bench.call('GET', '/v1/sessions')
    for (const reply of [put, read, session, list]) expect(reply.text).not.toContain('hidden')
    const again = await bench.call('PUT', place(id), { tools: read.body['tools'] })
    expect([again.status, codeOf(again)]).toEqual([400, 'invalid_request'])
    expect(messageOf(again)).toContain('"redacted"')
  })

  it.each([
    [
      'both url and command',
      { type: 'mcp', name: 'm', url: 'https://m.example', command: 'm' },
      'exactly one',
    ],
    ['neither url nor command', { type: 'mcp', name: 'm' }, 'exactly one'],
    ['a url on a function', { type: 'function', name: 'f', url: 'https://x.example' }, '"url"'],
    ['a command on a function', { type: 'function', name: 'f', command: 'x' }, '"command"'],
    ['args without a command', { type: 'mcp', name: 'm', url: 'https://x.example', args: [] }, 'args'],
    [
      'allowed_tools that are no list',
      { type: 'mcp', name: 'm', command: 'x', allowed_tools: 'a' },
      'allowed_tools',
    ],
    ['required that is no boolean', { type: 'mcp', name: 'm', command: 'x', required: 'yes' }, 'required'],
    ['a description that is no string', { type: 'function', name: 'f', description: 3 }, 'description'],
    ['parameters that are no object', { type: 'function', name: 'f', parameters: [] }, 'parameters'],
    ['half a second', { type: 'function', name: 'f', timeout_seconds: 0.5 }, 'timeout_seconds'],
    ['a name that is no string', { type: 'function', name: 3 }, 'name'],
    ['an unknown type', { type: 'telepathy' }, 'type'],
  ])(
    'TOO-09 TOO-10 TOO-12 TOO-14 TOO-15 TOO-16 TOO-20 TOO-21 TOO-22 TOO-24 TOO-25 refuses %s',
    async (_what, tool, named) => {
      const bench = await open(profile)
      const id = await bench.session()
      for (const reply of [
        await bench.call('POST', '/v1/sessions', { agent: { tools: [tool] } }),
        await bench.call('PUT', place(id), { tools: [tool] }),
      ]) {
        expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
        expect(messageOf(reply)).toContain(named)
      }
    },
  )

  it.each([
    ['function', 'name, description, parameters, timeout_seconds'],
    ['mcp', 'url, command, args, headers, env, allowed_tools, required'],
    ['browse', 'type, name'],
  ])('TOO-26 TOO-27 refuses an unknown field of a %s and lists what it accepts', async (type, accepted) => {
    const bench = await open(profile)
    const tool = { type, name: 'x', timeout: 3 }
    const reply = await bench.call('POST', '/v1/sessions', { agent: { tools: [tool] } })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(messageOf(reply)).toMatch(/"timeout" in agent\.tools\.0/)
    expect(messageOf(reply)).toContain(accepted)
  })

  it('TOO-22 TOO-23 a function has the deadline that it declares, or none', async () => {
    const bench = await open(profile)
    const tools = [
      { type: 'function', name: 'quick', timeout_seconds: 60 },
      { type: 'function', name: 'slow' },
    ]
    const id = await bench.session({ agent: { tools } })
    await bench.send(id, 'call quick {} & call slow {}')
    const [quick, slow] = await bench.actions(id)
    expect(Number(quick?.['expires_at']) - Number(quick?.['created_at'])).toBe(60_000)
    expect(slow?.['expires_at']).toBeNull()
    await bench.emulator.advance(60_000)
    expect(rowsOf((await bench.read(id))['required_actions']).map(({ name }) => name)).toEqual(['slow'])
  })
})

describe.each(PROFILES)('the tools that a session has, profile %s', (profile) => {
  it('TOO-30 TOO-31 TOO-33 naming a networked type leaves the named ones, [] none, nothing all', async () => {
    const bench = await open(profile, { scenario: doing(use('web_search', 'browse')) })
    const [search, browse] = ['(web_search answered)', '(browse answered)']
    const off = (type: string) => `${type} is not available in this session.`
    expect(await using(bench, {})).toEqual([search, browse])
    expect(await using(bench, { tools: [{ type: 'function', name: 'f' }] })).toEqual([search, browse])
    expect(await using(bench, { tools: [{ type: 'browse' }] })).toEqual([off('web_search'), browse])
    expect(await using(bench, { tools: [] })).toEqual([off('web_search'), off('browse')])
    const defaults = await bench.call('GET', place(await bench.session()))
    expect(rowsOf(defaults.body['tools']).map(({ type }) => type)).toEqual(NETWORKED)
  })

  it('TOO-32 a tool that the deployment has turned off stays off even when named', async () => {
    const scenario = doing(use('browse', 'web_search'), { deployment: { tools_off: ['browse'] } })
    const bench = await open(profile, { scenario })
    const seen = ['browse is not available in this session.', '(web_search answered)']
    expect(await using(bench, { tools: [{ type: 'browse' }, { type: 'web_search' }] })).toEqual(seen)
    expect(await using(bench, {})).toEqual(seen)
  })

  it('TOO-34 TOO-35 TOO-36 TOO-37 TOO-38 TOO-39 shell, files, services, preview and commits are always there', async () => {
    const steps = [
      'shell echo hi',
      'write a.txt mine',
      { read: 'a.txt' },
      { serve: { command: 'npm start', port: 8080 } },
      'preview 8080',
      { commit: 'Add a file' },
    ]
    const bench = await open(profile, { scenario: doing(steps) })
    for (const tools of [[], [{ type: 'function', name: 'f' }], undefined]) {
      const id = await bench.session(tools === undefined ? {} : { agent: { tools } })
      await talk(bench, id)
      expect(await outputs(bench, id)).toEqual([
        'hi',
        'mine',
        'listening on port 8080',
        expect.stringMatching(/^\[main [0-9a-f]{7}\] Add a file$/),
      ])
      expect((await bench.read(id))['preview']).toMatchObject({ port: 8080 })
    }
    for (const type of ['shell', 'commit']) {
      const refused = await bench.call('POST', '/v1/sessions', { agent: { tools: [{ type }] } })
      expect(refused.status).toBe(400)
    }
  })

  it('TOO-15 allowed_tools leaves the agent those of a server, and no others', async () => {
    const servers = [{ name: 'tickets', tools: [{ name: 'list', output: 'T-1' }, { name: 'close' }] }]
    const steps = use('tickets.list', 'tickets.close', 'tickets.none', 'other.list')
    const bench = await open(profile, { scenario: doing(steps, { mcp_servers: servers }) })
    const server = { type: 'mcp', name: 'tickets', url: 'https://tickets.example' }
    const none = (name: string) => `There is no tool ${name} in this session.`
    expect(await using(bench, { tools: [{ ...server, allowed_tools: ['list'] }] })).toEqual([
      'T-1',
      none('tickets.close'),
      none('tickets.none'),
      none('other.list'),
    ])
    expect((await using(bench, { tools: [server] }))[1]).toBe('(tickets.close answered)')
  })

  it('GEN-16 TOO-11 TOO-13 EVT-84 EVT-85 EVT-86 the sandbox reaches its servers, by address or by command, when it comes up', async () => {
    const servers = [
      { name: 'far', tools: [{ name: 'ping', output: 'distant' }] },
      { name: 'near', tools: [{ name: 'ping', output: 'near by' }] },
      { name: 'gone', unreachable: 'spawn gone ENOENT' },
    ]
    const steps = use('far.ping', 'near.ping', 'gone.ping')
    const bench = await open(profile, { scenario: doing(steps, { mcp_servers: servers }) })
    const tools = [
      { type: 'mcp', name: 'far', url: 'https://far.example' },
      { type: 'mcp', name: 'near', command: 'server' },
      { type: 'mcp', name: 'gone', command: 'gone' },
      { type: 'mcp', name: 'lost', url: 'https://lost.invalid/mcp' },
    ]
    const id = await bench.session({ agent: { tools } })
    expect(bench.events(id)).toEqual([])
    expect((await talk(bench, id))['status']).toBe('completed')
    expect(await payloads(bench, id, 'mcp.unavailable')).toEqual([
      expect.objectContaining({ server: 'gone', reason: 'spawn gone ENOENT' }),
      expect.objectContaining({ server: 'lost', reason: 'getaddrinfo ENOTFOUND lost.invalid' }),
    ])
    expect(await outputs(bench, id)).toEqual([
      'distant',
      'near by',
      'There is no tool gone.ping in this session.',
    ])
    expect((await bench.items(id)).map(({ type }) => type)).toContain('mcp_unavailable')
  })

  it('TOO-61 TOO-62 a program of a server is not found among environment.files, but where POST files wrote it before', async () => {
    const bench = await open(profile, { scenario: doing(use('local.ping')) })
    const tools = [{ type: 'mcp', name: 'local', command: 'node', args: ['./server.js'] }]
    const seeded = await bench.session({ agent: { tools }, environment: { files: [inline('server.js')] } })
    await talk(bench, seeded)
    expect(await payloads(bench, seeded, 'mcp.unavailable')).toEqual([
      expect.objectContaining({ server: 'local', reason: './server.js: no such file in the workspace' }),
    ])
    const written = await bench.session()
    await talk(bench, written)
    const files = { files: [inline('server.js')] }
    expect((await bench.call('POST', `/v1/sessions/${written}/files`, files)).status).toBe(200)
    await bench.call('PUT', place(written), { tools })
    await bench.emulator.advance(1000)
    await talk(bench, written)
    expect(bench.events(written)).not.toContain('mcp.unavailable')
    expect((await outputs(bench, written)).at(-1)).toBe('(local.ping answered)')
    const inlined = { type: 'mcp', name: 'local', command: 'node', args: ['-e', 'serve()'] }
    expect(await using(bench, { tools: [inlined] })).toEqual(['(local.ping answered)'])
  })
})

describe.each(PROFILES)('reading and replacing tools, profile %s', (profile) => {
  it('TOO-40 TOO-41 TOO-42 TOO-50 TOO-52 TOO-53 TOO-54 TOO-55 replaces the list whole and answers the configuration as it reads', async () => {
    const bench = await open(profile)
    const id = await bench.session({
      agent: { tools: [{ type: 'browse' }, { type: 'function', name: 'f' }] },
    })
    const put = await bench.call('PUT', place(id), { tools: [{ type: 'web_search' }] })
    expect([put.status, put.body]).toEqual([
      200,
      { object: 'session.tools', session_id: id, tools: [{ type: 'web_search' }], text: null },
    ])
    expect((await bench.call('GET', place(id))).body).toEqual(put.body)
    expect(((await bench.read(id))['agent'] as Fields)['tools']).toEqual([{ type: 'web_search' }])
    expect((await bench.call('PUT', place(id), { tools: [] })).body['tools']).toEqual([])
    expect((await bench.call('PUT', place(id), {})).status).toBe(400)
    expect((await bench.call('GET', place('none'))).status).toBe(404)
  })

  it('TOO-43 TOO-44 TOO-45 TOO-46 TOO-47 TOO-48 TOO-49 TOO-51 text is kept in the words of the profile, and enforced on nothing', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect((await bench.call('GET', place(id))).body['text']).toBeNull()
    const put = async (text: Fields) => bench.call('PUT', place(id), { tools: [], text })
    const format = profile === 'a' ? { type: 'json' } : 'json'
    expect((await put({ verbosity: 'low' })).body['text']).toEqual({ verbosity: 'low', format: null })
    expect((await put({ verbosity: 'low', format })).body['text']).toEqual({ verbosity: 'low', format })
    const [mine, theirs] = profile === 'a' ? ['medium', 'normal'] : ['normal', 'medium']
    expect((await put({ verbosity: mine })).status).toBe(200)
    expect((await put({ verbosity: theirs })).status).toBe(400)
    expect((await put({ format: profile === 'a' ? 'json' : { type: 'json' } })).status).toBe(400)
    await put({ verbosity: 'low', format })
    await bench.emulator.advance(1000)
    await talk(bench, id, 'say not JSON, and long all the same')
    expect(await said(bench, id)).toEqual(['not JSON, and long all the same'])
  })

  it('TOO-56 TOO-57 PUT restarts the bridge, so that writing files may conflict at once', async () => {
    const bench = await open(profile, { limits: { bridgeRestartMs: 60_000 } })
    const id = await bench.session()
    await talk(bench, id, 'say hello')
    await bench.call('PUT', place(id), { tools: [] })
    const files = { files: [inline('a')] }
    const early = await bench.call('POST', `/v1/sessions/${id}/files`, files)
    expect([early.status, codeOf(early)]).toEqual([409, 'conflict'])
    await bench.emulator.advance(60_000)
    expect((await bench.call('POST', `/v1/sessions/${id}/files`, files)).status).toBe(200)
  })

  it('TOO-58 TOO-59 TOO-60 ERR-15 ERR-16 an unreachable required server fails the first call that needs the workspace, every time', async () => {
    const bench = await open(profile, { previewDomain: 'previews.example' })
    const id = await bench.session()
    await talk(bench, id, 'preview 8080')
    const tools = [{ type: 'mcp', name: 'tickets', url: 'https://tickets.invalid', required: true }]
    expect((await bench.call('PUT', place(id), { tools })).status).toBe(200)
    await bench.emulator.advance(1000)
    const needs = [
      ['POST', `/v1/sessions/${id}/files`, { files: [inline('a')] }],
      ['POST', `/v1/sessions/${id}/files/refresh`, undefined],
      ['POST', `/v1/sessions/${id}/preview`, undefined],
    ] as const
    for (const [method, path, body] of [...needs, ...needs]) {
      const reply = await bench.call(method, path, body)
      expect([path, reply.status, codeOf(reply)]).toEqual([path, 400, 'invalid_request'])
      expect(messageOf(reply)).toMatch(/"tickets".*ENOTFOUND/)
      expect(reply.headers['retry-after']).toBeUndefined()
    }
    expect((await bench.call('GET', `/v1/sessions/${id}/files`)).status).toBe(200)
    expect((await bench.send(id, 'say hello')).status).toBe(202)
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toHaveLength(1)
  })
})
