import { describe, expect, it } from 'vitest'
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
import { said, talk } from './transcript.ts'

const inline = (path: string, text: string) => ({
  type: 'inline',
  path,
  data: Buffer.from(text).toString('base64'),
})

/** `environment.repo` as the profile has it. */
const repo = (bench: Bench, owner: string, name: string) =>
  bench.details.name === 'a' ? { full_name: `${owner}/${name}` } : { owner, name }

const environmentOf = async (bench: Bench, id: string) => (await bench.read(id))['environment'] as Fields

const ids = (reply: { body: Fields }) => rowsOf(reply.body).map((row) => row['id'])

describe.each(PROFILES)('a session, profile %s', (profile) => {
  it('SES-01 SES-02 SES-03 SES-08 SES-09 SES-12 SES-14 SES-16 SES-17 SES-21 SES-22 SES-23 SES-24 SES-25 SES-26 SES-27 SES-28 SES-29 SES-30 SES-31 SES-32 SES-33 SES-34 SES-35 SES-36 SES-65 SES-66 SES-67 creates a session with every field', async () => {
    const bench = await open(profile)
    const reply = await bench.call('POST', '/v1/sessions', { title: 'A', metadata: { order: '42' } })
    expect(reply.status).toBe(201)
    expect(reply.body).toMatchObject({
      object: 'session',
      status: 'idle',
      title: 'A',
      metadata: { order: '42' },
      source: 'api',
      created_by_token: expect.stringMatching(/^tok_/),
      agent: {
        id: null,
        model: 'demo',
        model_credential_id: expect.any(String),
        approval_mode: expect.any(String),
        instructions: '',
        permission_rules: [],
        tools: expect.any(Array),
      },
      environment: {
        type: 'sandbox',
        state: 'unknown',
        workspace_directory: '/workspace',
        repo: { full_name: null, branch: null, clone_error: null },
      },
      preview: { url: null, port: null, published_url: null },
      required_actions: [],
    })
    expect(reply.body['id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Math.abs(Number(reply.body['created_at']) - Date.now())).toBeLessThan(60_000)
    expect(reply.text).not.toContain(bench.token)
  })

  it('SES-03 SES-04 SES-05 SES-06 SES-07 is idle, working, requires_action or failed, and lives on after a failure', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect((await bench.read(id))['status']).toBe('idle')
    await bench.send(id, 'hang')
    await bench.reach(id, 'working')
    await bench.steer(id, 'call f {}\nfail out of disk')
    const [action] = await bench.actions(id)
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.reach(id, 'failed')
    expect((await talk(bench, id, 'say better'))['status']).toBe('completed')
    expect((await bench.read(id))['status']).toBe('idle')
  })

  it('SES-10 SES-11 moves updated_at on any change, also when its workspace wakes', async () => {
    const bench = await open(profile, { previewDomain: 'previews.example' })
    const id = await bench.session()
    let last = Number((await bench.read(id))['updated_at'])
    const moved = async (what: string): Promise<void> => {
      const now = Number((await bench.read(id))['updated_at'])
      expect([what, now > last]).toEqual([what, true])
      last = now
    }
    await bench.call('PATCH', `/v1/sessions/${id}`, { title: 'new' })
    await moved('title')
    await bench.call('PUT', `/v1/sessions/${id}/tools`, { tools: [] })
    await moved('tools')
    await talk(bench, id, 'say hello')
    await bench.settle(id)
    await moved('a turn')
    await bench.call('POST', `/v1/sessions/${id}/preview`, {
      [profile === 'a' ? 'port' : 'service_port']: 80,
    })
    await moved('a preview')
    await bench.emulator.advance(6 * 60_000)
    await moved('the pause')
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    expect(bench.events(id).at(-1)).toBe('sandbox.resumed')
    await moved('the waking')
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await moved('a required action')
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.reach(id, 'idle')
    await moved('its answer')
    await bench.emulator.advance(60_000)
    const rested = await bench.read(id)
    await bench.send(id, 'cannot start no room')
    const failed = await bench.reach(id, 'failed')
    // Two changes of status, which never share a moment.
    expect(Number(failed['updated_at']) - Number(rested['updated_at'])).toBeGreaterThan(1)
    await moved('a run that cannot start')
    const before = await bench.read(id)
    await bench.call('GET', `/v1/sessions/${id}/items`)
    expect(await bench.read(id)).toEqual(before)
  })

  it('SES-13 SES-15 keeps the metadata for good and never gives itself a title', async () => {
    const bench = await open(profile)
    const id = await bench.session({ metadata: { order: '42' }, input: bench.message('say Tea prices') })
    await bench.settle(id)
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    expect(await bench.read(id)).toMatchObject({ title: '', metadata: { order: '42' } })
  })

  it('SES-18 SES-19 SES-20 shows where a session comes from', async () => {
    const sessions = [
      { title: 'console', source: 'console' as const },
      { title: 'cli', source: 'cli' as const },
      { title: 'old', source: null },
    ]
    const bench = await open(profile, { scenario: { name: 'x', deployment: { sessions } } })
    await bench.session({ title: 'api' })
    const { body } = await bench.call('GET', '/v1/sessions?order=asc')
    expect(rowsOf(body).map(({ title, source }) => [title, source])).toEqual([
      ['console', 'console'],
      ['cli', 'cli'],
      ['old', null],
      ['api', 'api'],
    ])
    const [old] = rowsOf(body).filter(({ source }) => source === null)
    expect((await talk(bench, String(old?.['id']), 'say hello'))['status']).toBe('completed')
  })

  it('SES-37 SES-38 SES-83 shows everything that it waits on, as it is now, also in the list', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const other = await bench.session()
    await bench.send(id, 'call f {} & call g {}')
    await bench.send(other, 'ask Which colour?')
    const actions = await bench.actions(id)
    await bench.actions(other)
    expect(actions.map(({ name }) => name)).toEqual(['f', 'g'])
    await bench.answer(id, { call_id: actions[0]?.['call_id'], output: 'x' })
    // The events of both calls are still there; only one is required.
    expect(bench.events(id).filter((type) => type === 'tool.required')).toHaveLength(2)
    const listed = rowsOf((await bench.call('GET', '/v1/sessions?order=asc')).body)
    expect(
      new Map(listed.map((row) => [row['id'], rowsOf(row['required_actions']).map(({ type }) => type)])),
    ).toEqual(
      new Map([
        [id, ['function_call']],
        [other, ['question']],
      ]),
    )
    expect((await bench.read(id))['required_actions']).toEqual([actions[1]])
  })
})

describe.each(PROFILES)('the model of a session, profile %s', (profile) => {
  const connect = async (bench: Bench) =>
    (await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })).body

  it('SES-39 SES-69 SES-70 SES-97 is that of its connection, which is found by either', async () => {
    const bench = await open(profile)
    const made = await connect(bench)
    const agentOf = async (agent: Fields) => (await bench.read(await bench.session({ agent })))['agent']
    const northwind = { model: 'northwind-large', model_credential_id: made['id'] }
    expect(await agentOf({ model: 'northwind-large' })).toMatchObject(northwind)
    expect(await agentOf({ model_credential_id: made['id'] })).toMatchObject(northwind)
    expect(await agentOf(northwind)).toMatchObject(northwind)
    expect(await agentOf({})).toMatchObject({ model: 'demo' })
    const torn = await bench.call('POST', '/v1/sessions', {
      agent: { model: 'demo', model_credential_id: made['id'] },
    })
    expect([torn.status, codeOf(torn)]).toEqual([400, 'invalid_request'])
    expect(messageOf(torn)).toContain('"northwind-large"')
  })

  it('SES-96 without any model there is no session', async () => {
    const bench = await open(profile)
    const agent = (await bench.read(await bench.session()))['agent'] as Fields
    const { method, path } = bench.details.disconnect
    await bench.call(method, path.replace('{credential_id}', String(agent['model_credential_id'])))
    const refused = await bench.call('POST', '/v1/sessions', {})
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    expect(messageOf(refused)).toContain('no model is connected')
  })

  it('SES-121 SES-122 is changed by PATCH, or not, as the profile has it', async () => {
    const bench = await open(profile)
    const made = await connect(bench)
    const id = await bench.session()
    const place = `/v1/sessions/${id}`
    const reply = await bench.call('PATCH', place, { agent: { model: 'northwind-large' } })
    const moved = { model: 'northwind-large', model_credential_id: made['id'] }
    const kept = { model: 'demo' }
    expect((await bench.read(id))['agent']).toMatchObject(profile === 'a' ? moved : kept)
    expect(reply.status).toBe(profile === 'a' ? 200 : 400)
    const stray = await bench.call('PATCH', place, { agent: { model: 'nope' } })
    expect([stray.status, codeOf(stray)]).toEqual([400, 'invalid_request'])
    expect(messageOf(stray)).toContain(
      profile === 'a' ? '"nope"' : 'accepted: instructions, approval_mode, permission_rules',
    )
    for (const body of [{ agent: { tools: [] } }, { text: {} }, { environment: {} }, { input: 'x' }]) {
      expect((await bench.call('PATCH', place, body)).status).toBe(400)
    }
  })
})

describe.each(PROFILES)('the repository of a session, profile %s', (profile) => {
  const deployment = {
    repositories: [
      { full_name: 'tea/shop', branch: 'trunk', files: { 'README.md': '# Tea' } },
      { full_name: 'tea/secret', clone_error: 'permission denied' },
    ],
  }

  it('SES-33 SES-34 SES-40 SES-43 SES-77 SES-116 is pending at creation and cloned with the workspace, on a branch of its own', async () => {
    const bench = await open(profile, { scenario: { name: 'x', deployment } })
    const made = await bench.call('POST', '/v1/sessions', {
      environment: { repo: repo(bench, 'tea', 'shop') },
    })
    expect(made.status).toBe(201)
    const pending = { full_name: 'tea/shop', branch: null, clone_error: null }
    expect(made.body['environment']).toMatchObject({ state: 'unknown', repo: pending })
    const id = String(made.body['id'])
    await talk(bench, id, 'say hello')
    expect((await environmentOf(bench, id))['repo']).toEqual({ ...pending, branch: 'trunk' })
    const query = `?${bench.details.files.snapshotQuery}=1`
    const files = await bench.call('GET', `/v1/sessions/${id}/files${query}`)
    expect(rowsOf(files.body).map(({ path }) => path)).toEqual(['README.md'])
    const other = profile === 'a' ? { owner: 'tea', name: 'shop' } : { full_name: 'tea/shop' }
    expect((await bench.call('POST', '/v1/sessions', { environment: { repo: other } })).status).toBe(400)
  })

  it('SES-35 SES-44 a failed clone is shown in clone_error, and the turn continues', async () => {
    const bench = await open(profile, { scenario: { name: 'x', deployment } })
    for (const [name, why] of [
      ['secret', 'permission denied'],
      ['none', 'not found'],
    ] as const) {
      const id = await bench.session({ environment: { repo: repo(bench, 'tea', name) } })
      expect((await talk(bench, id, 'say hello'))['status']).toBe('completed')
      expect((await environmentOf(bench, id))['repo']).toEqual({
        full_name: `tea/${name}`,
        branch: null,
        clone_error: expect.stringContaining(why),
      })
    }
  })

  it('SES-41 SES-42 has no branch to choose', async () => {
    const bench = await open(profile, { scenario: { name: 'x', deployment } })
    for (const environment of [
      { branch: 'main' },
      { repo: { ...repo(bench, 'tea', 'shop'), branch: 'main' } },
    ]) {
      const refused = await bench.call('POST', '/v1/sessions', { environment })
      expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
      expect(messageOf(refused)).toContain('"branch"')
    }
    const id = await bench.session({ environment: { repo: repo(bench, 'tea', 'shop') } })
    expect(await environmentOf(bench, id)).not.toHaveProperty('branch')
  })

  it('SES-103 SES-104 is refused at once without a repository-host connection', async () => {
    const bench = await open(profile)
    const refused = await bench.call('POST', '/v1/sessions', {
      environment: { repo: repo(bench, 'tea', 'shop') },
    })
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    expect(messageOf(refused)).toContain('repository-host connection')
    expect(bench.emulator.ledger().sessions).toEqual([])
  })
})

describe.each(PROFILES)('creating sessions, profile %s', (profile) => {
  it('GEN-27 SES-68 SES-71 SES-72 SES-73 SES-74 SES-75 SES-76 SES-78 SES-79 SES-80 SES-81 SES-117 takes everything at once and reads it back', async () => {
    const bench = await open(profile)
    const saved = await bench.call('POST', bench.details.paths.saveAgent, { name: 'support' })
    const [known] = rowsOf((await bench.call('GET', '/v1/environment-profiles')).body)
    const agent = {
      id: saved.body['id'],
      model: 'demo',
      instructions: 'Be brief.',
      approval_mode: 'read_only',
      permission_rules: [{ decision: 'deny', tool: 'shell' }],
      tools: [{ type: 'function', name: 'f', timeout_seconds: 5 }],
    }
    const id = await bench.session({
      agent,
      title: 'All',
      metadata: { order: '42' },
      environment: { files: [inline('a.txt', 'x')], profiles: [known?.['id']] },
      input: bench.message('say hello'),
      text: { verbosity: 'low' },
    })
    expect(await bench.read(id)).toMatchObject({ title: 'All', metadata: { order: '42' }, agent })
    const environment = await environmentOf(bench, id)
    const seeds = profile === 'a' ? [{ path: 'a.txt' }] : undefined
    expect([environment['files'], environment['profiles']]).toEqual(
      profile === 'a' ? [seeds, [known?.['id']]] : [undefined, undefined],
    )
    expect((await bench.call('GET', `/v1/sessions/${id}/tools`)).body).toMatchObject({
      tools: agent.tools,
      text: { verbosity: 'low' },
    })
    await bench.settle(id)
    expect(await said(bench, id)).toEqual(['hello'])
    const stray = await bench.call('POST', '/v1/sessions', { environment: { profiles: ['envp_none'] } })
    expect(messageOf(stray)).toContain('envp_none')
  })

  it('SES-100 SES-115 takes the first message with the creation', async () => {
    const bench = await open(profile)
    const opening = bench.message('say hello')
    const id = await bench.session({ input: opening })
    await until(async () => ((await bench.turns(id)).length === 1 ? true : undefined))
    await bench.reach(id, 'idle')
    expect(bench.events(id)).toContain('user.message')
    const strange = profile === 'a' ? { content: 'x' } : { text: 'x' }
    expect((await bench.call('POST', '/v1/sessions', { input: strange })).status).toBe(400)
  })

  it('SES-101 SES-102 leaves nothing behind when the first message fails, or else names what it left', async () => {
    const bench = await open(profile)
    const creation = { title: 'half', input: bench.message('say hello') }
    bench.emulator.faults.set({ refuse_openings: 1 })
    const clean = await bench.call('POST', '/v1/sessions', creation)
    expect([clean.status, codeOf(clean)]).toEqual([500, 'internal_error'])
    expect(ids(await bench.call('GET', '/v1/sessions'))).toEqual([])
    bench.emulator.faults.set({ refuse_openings: 1, fail_cleanups: 1 })
    const left = await bench.call('POST', '/v1/sessions', creation)
    const [id] = ids(await bench.call('GET', '/v1/sessions'))
    expect([codeOf(left), messageOf(left)]).toEqual([
      'internal_error',
      expect.stringContaining(`delete session ${String(id)}`),
    ])
    expect(bench.events(String(id))).toEqual([])
    expect((await bench.call('DELETE', `/v1/sessions/${String(id)}`)).status).toBeLessThan(300)
    bench.emulator.faults.set({ refuse_openings: 1 })
    await bench.session({ title: 'without a message' })
  })

  it('SES-105 SES-106 SES-107 SES-108 SES-109 seeds files whenever a workspace is built, and survives one that fails', async () => {
    const bench = await open(profile)
    const files = [inline('a', 'a file'), inline('a/b', 'below a file'), inline('c', 'fine')]
    const id = await bench.session({ environment: { files } })
    const listed = async () => {
      const query = `?${bench.details.files.snapshotQuery}=1`
      const { body } = await bench.call('GET', `/v1/sessions/${id}/files${query}`)
      return rowsOf(body).map(({ path }) => path)
    }
    await talk(bench, id, 'write other.txt x')
    expect(await listed()).toEqual(['a', 'c', 'other.txt'])
    const errors = (await bench.items(id)).filter(({ content }) => String(content).startsWith('a/b'))
    expect(errors.map(({ content }) => content)).toEqual(['a/b could not be written: not a directory'])
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    expect((await talk(bench, id, 'say again'))['status']).toBe('completed')
    expect(await listed()).toEqual(['a', 'c'])
    const shapeless = { environment: { files: [{ path: 'x', text: 'y' }] } }
    expect((await bench.call('POST', '/v1/sessions', shapeless)).status).toBe(400)
  })

  it('SES-68 SES-110 SES-111 SES-112 SES-113 SES-114 overrides a saved agent field by field, its tools and text whole', async () => {
    const bench = await open(profile)
    const { body: made } = await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })
    const { body: saved } = await bench.call('POST', bench.details.paths.saveAgent, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }, { type: 'function', name: 'f' }],
      text: { verbosity: 'low' },
    })
    const session = async (inline: Fields, more: Fields = {}) => {
      const id = await bench.session({ agent: { id: saved['id'], ...inline }, ...more })
      const { body } = await bench.call('GET', `/v1/sessions/${id}/tools`)
      return { agent: (await bench.read(id))['agent'] as Fields, text: body['text'] as Fields }
    }
    const plain = await session({})
    expect(plain.agent).toMatchObject({
      id: saved['id'],
      model: 'demo',
      instructions: 'Be kind.',
      tools: saved['tools'],
    })
    const northwind = { model: 'northwind-large', model_credential_id: made['id'] }
    expect((await session({ model: 'northwind-large' })).agent).toMatchObject({
      ...northwind,
      instructions: 'Be kind.',
    })
    expect((await session({ model_credential_id: made['id'] })).agent).toMatchObject(northwind)
    expect((await session({ instructions: 'Be brief.' })).agent).toMatchObject({
      instructions: 'Be brief.',
      tools: saved['tools'],
    })
    expect((await session({ tools: [{ type: 'screenshot' }] })).agent['tools']).toEqual([
      { type: 'screenshot' },
    ])
    const format = profile === 'a' ? { type: 'json' } : 'json'
    expect((await session({}, { text: { format } })).text).toEqual({ verbosity: null, format })
  })

  it.each([
    ['an approval mode that does not exist', { agent: { approval_mode: 'per_step' } }, 'agent.approval_mode'],
    ['a metadata value that is no string', { metadata: { a: 1 } }, 'metadata.a'],
    ['a metadata value that is too long', { metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
    ['a rule that cannot be read', { agent: { permission_rules: [{ decision: 'perhaps' }] } }, 'decision'],
    [
      'a rule field of 501 characters',
      { agent: { permission_rules: [{ decision: 'allow', tool: 'x'.repeat(501) }] } },
      '500',
    ],
    [
      '51 rules',
      { agent: { permission_rules: Array.from({ length: 51 }, () => ({ decision: 'allow' })) } },
      '50',
    ],
    ['instructions of 32001 characters', { agent: { instructions: 'x'.repeat(32_001) } }, '32000'],
    ['a model that is not connected', { agent: { model: 'nope-1' } }, '"nope-1"'],
    ['a credential that is not ours', { agent: { model_credential_id: 'mcred_x' } }, '"mcred_x"'],
    [
      'a server with both url and command',
      { agent: { tools: [{ type: 'mcp', name: 'm', url: 'https://m.example', command: 'm' }] } },
      'exactly one',
    ],
    ['a server with neither', { agent: { tools: [{ type: 'mcp', name: 'm' }] } }, 'exactly one'],
    [
      'an unknown tool field',
      { agent: { tools: [{ type: 'function', name: 'f', timeout: 3 }] } },
      'timeout_seconds',
    ],
    [
      'a tool that was read back',
      { agent: { tools: [{ type: 'mcp', name: 'm', url: 'https://m.example', redacted: [] }] } },
      'redacted',
    ],
    ['33 tools', { agent: { tools: Array.from({ length: 33 }, () => ({ type: 'browse' })) } }, '32'],
    [
      'a tool name of 65 characters',
      { agent: { tools: [{ type: 'function', name: 'x'.repeat(65) }] } },
      '64',
    ],
    [
      'a deadline of 7201 seconds',
      { agent: { tools: [{ type: 'function', name: 'f', timeout_seconds: 7201 }] } },
      '7200',
    ],
    [
      'a file that is too large',
      {
        environment: {
          files: [{ type: 'inline', path: 'a', data: Buffer.alloc(4_194_305).toString('base64') }],
        },
      },
      'larger than',
    ],
  ])(
    'ERR-06 ERR-10 ERR-11 ERR-12 ERR-13 ERR-14 LIM-10 LIM-11 LIM-12 LIM-13 LIM-14 LIM-19 LIM-22 SES-50 SES-60 SES-98 SES-99 TOO-24 TOO-25 TOO-26 TOO-27 TOO-29 refuses %s and leaves no session behind',
    async (_what, body, named) => {
      const bench = await open(profile)
      const reply = await bench.call('POST', '/v1/sessions', body)
      expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
      expect(messageOf(reply)).toContain(named)
      expect(bench.emulator.ledger().sessions).toEqual([])
    },
  )

  it('ERR-04 GEN-24 GEN-25 refuses an unknown field, names the nearest and lists the accepted ones', async () => {
    const bench = await open(profile)
    const reply = await bench.call('POST', '/v1/sessions', { titel: 'A' })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(messageOf(reply)).toMatch(/"titel".*"title".*agent, title, metadata, environment, input, text/)
    const nested = await bench.call('POST', '/v1/sessions', { agent: { instruction: 'x' } })
    expect(messageOf(nested)).toMatch(/"instruction" in agent; did you mean "instructions"/)
    expect(bench.emulator.ledger().sessions).toEqual([])
  })
})

describe.each(PROFILES)('listing sessions, profile %s', (profile) => {
  it('SES-82 SES-84 LIM-66 LIM-67 LIM-68 pages with limit, order and after, and reads each alone', async () => {
    const bench = await open(profile)
    const made = [await bench.session(), await bench.session(), await bench.session()]
    expect(ids(await bench.call('GET', '/v1/sessions'))).toEqual(made.toReversed())
    expect(ids(await bench.call('GET', '/v1/sessions?order=desc'))).toEqual(made.toReversed())
    const first = await bench.call('GET', '/v1/sessions?order=asc&limit=2')
    expect([ids(first), first.body['has_more']]).toEqual([made.slice(0, 2), true])
    const rest = await bench.call('GET', `/v1/sessions?order=asc&after=${String(first.body['last_id'])}`)
    expect([ids(rest), rest.body['has_more']]).toEqual([made.slice(2), false])
    const alone = await bench.call('GET', `/v1/sessions/${made[2]}`)
    expect(rowsOf(rest.body)).toEqual([alone.body])
    expect(codeOf(await bench.call('GET', '/v1/sessions/none'))).toBe('not_found')
    await bench.call('PATCH', `/v1/sessions/${made[0]}`, { title: 'changed' })
    const [newest] = ids(await bench.call('GET', '/v1/sessions'))
    expect(newest).toBe(profile === 'a' ? made[2] : made[0])
  })

  it('LIM-03 LIM-04 LIM-65 LIM-68 GEN-22 GEN-23 pages through sessions, newest first, exactly once each', async () => {
    const bench = await open(profile, { limits: { sessions: 60 } })
    const ids: string[] = []
    for (let n = 0; n < 45; n++) ids.push(await bench.session({ title: String(n) }))
    const seen: unknown[] = []
    const sizes: number[] = []
    for (let after = ''; ;) {
      const { body } = await bench.call('GET', `/v1/sessions?after=${after}`.replace(/\?after=$/, ''))
      const rows = rowsOf(body)
      seen.push(...rows.map((row) => row['id']))
      sizes.push(rows.length)
      expect(body['object']).toBe('list')
      expect(body['last_id']).toBe(rows.at(-1)?.['id'])
      if (body['has_more'] !== true) break
      after = String(body['last_id'])
    }
    expect(seen).toEqual(ids.toReversed())
    expect(sizes).toEqual([20, 20, 5])
    const asc = await bench.call('GET', '/v1/sessions?order=asc&limit=100')
    expect(rowsOf(asc.body).map((row) => row['id'])).toEqual(ids)
    const exact = await bench.call('GET', '/v1/sessions?limit=45')
    expect(exact.body['has_more']).toBe(false)
  })

  it('LIM-03 ERR-09 refuses a limit outside 1 to 100 rather than clamping it', async () => {
    const bench = await open(profile)
    for (const limit of ['0', '101', '-1', 'ten', '1.5', '1e999']) {
      const reply = await bench.call('GET', `/v1/sessions?limit=${limit}`)
      expect([limit, reply.status, codeOf(reply)]).toEqual([limit, 400, 'invalid_request'])
      expect(reply.body).not.toHaveProperty('data')
    }
  })

  it('LIM-62 LIM-63 answers a cursor that cannot be placed with an empty page', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.session()
    await bench.call('DELETE', `/v1/sessions/${id}`)
    for (const after of [id, 'never-issued', '%00']) {
      const { status, body } = await bench.call('GET', `/v1/sessions?after=${after}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ data: [], has_more: false, last_id: profile === 'a' ? '' : null })
    }
  })

  it('SES-123 SES-124 SES-125 filters by one metadata pair and by status', async () => {
    const bench = await open(profile)
    const wanted = await bench.session({ metadata: { order: '4:2' } })
    await bench.session({ metadata: { order: '43' } })
    const failed = await bench.session()
    await bench.send(failed, 'fail')
    await bench.reach(failed, 'failed')
    const byOrder = await bench.call('GET', '/v1/sessions?metadata=order:4:2')
    expect(rowsOf(byOrder.body).map((row) => row['id'])).toEqual([wanted])
    const byStatus = await bench.call('GET', '/v1/sessions?status=failed')
    expect(rowsOf(byStatus.body).map((row) => row['id'])).toEqual([failed])
    const waiting = await bench.session({ input: bench.message('ask Which colour?') })
    await bench.actions(waiting)
    const needed = await bench.call('GET', '/v1/sessions?status=requires_action')
    expect(rowsOf(needed.body).map((row) => row['id'])).toEqual([waiting])
    for (const query of ['status=tired', 'metadata=order', 'metadata=order:1&metadata=order:2']) {
      expect([query, (await bench.call('GET', `/v1/sessions?${query}`)).status]).toEqual([query, 400])
    }
  })

  it('ERR-05 GEN-26 refuses an unknown query parameter on every kind of list', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (const path of ['/v1/sessions', `/v1/sessions/${id}/turns`, '/v1/webhooks', `/v1/sessions/${id}`]) {
      const reply = await bench.call('GET', `${path}?lmit=3`)
      expect([path, reply.status]).toEqual([path, 400])
      expect(messageOf(reply)).toContain('"lmit"')
    }
    expect(messageOf(await bench.call('GET', '/v1/sessions?lmit=3'))).toContain('"limit"')
    const order = await bench.call('GET', '/v1/webhooks?order=asc')
    expect(messageOf(order)).toMatch(/"order".*accepted: limit, after/)
  })
})

describe.each(PROFILES)('changing sessions, profile %s', (profile) => {
  it('SES-85 SES-86 SES-87 SES-88 SES-89 SES-90 SES-10 changes what PATCH names and moves updated_at', async () => {
    const bench = await open(profile)
    const id = await bench.session({ title: 'before' })
    const before = await bench.read(id)
    const agent = {
      instructions: 'Be brief.',
      approval_mode: 'read_only',
      permission_rules: [{ decision: 'allow', tool: 'shell' }],
    }
    const reply = await bench.call('PATCH', `/v1/sessions/${id}`, {
      title: 'after',
      metadata: { a: 'b' },
      agent,
    })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({ title: 'after', metadata: { a: 'b' }, agent })
    expect(Number(reply.body['updated_at'])).toBeGreaterThan(Number(before['updated_at']))
    expect(await bench.read(id)).toEqual(reply.body)
  })

  it('ERR-07 SES-118 refuses a PATCH with nothing to change, or with a value that is not valid', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (const body of [{}, { agent: {} }]) {
      expect(codeOf(await bench.call('PATCH', `/v1/sessions/${id}`, body))).toBe('invalid_request')
    }
    const reply = await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { approval_mode: 'sometimes' } })
    expect(messageOf(reply)).toContain('approval_mode')
  })

  it('SES-119 patched instructions hold from the next turn, or from the next workspace, as the profile has it', async () => {
    const bench = await open(profile)
    const id = await bench.session({ agent: { instructions: 'one' } })
    await talk(bench, id, 'say {{instructions}}')
    await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { instructions: 'two' } })
    await talk(bench, id, 'say {{instructions}}')
    await bench.emulator.advance(6 * 60_000)
    await talk(bench, id, 'say {{instructions}}')
    const now = profile === 'a' ? 'two' : 'one'
    expect(await said(bench, id)).toEqual(['one', now, now])
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    await talk(bench, id, 'say {{instructions}}')
    expect((await said(bench, id)).at(-1)).toBe('two')
  })

  it('SES-120 a PATCH while a turn runs counts for the following one', async () => {
    const bench = await open(profile)
    const id = await bench.session({ agent: { instructions: 'one' } })
    await bench.send(id, 'call f {}\nshell echo {{instructions}}\nsay {{last}}')
    const [action] = await bench.actions(id)
    await bench.call('PATCH', `/v1/sessions/${id}`, {
      agent: { instructions: 'two', approval_mode: 'read_only' },
    })
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual(['one'])
    await talk(bench, id, 'shell ls')
    expect(bench.events(id).filter((type) => type === 'approval.resolved')).toHaveLength(1)
  })

  it('LIM-05 LIM-06 LIM-07 ERR-29 SES-91 SES-92 holds the ceiling of sessions until one is deleted', async () => {
    const bench = await open(profile, { limits: { sessions: 2 } })
    const first = await bench.session()
    await bench.session()
    const refused = await bench.call('POST', '/v1/sessions', {})
    expect([refused.status, codeOf(refused)]).toEqual([429, 'project_limit_exceeded'])
    expect(refused.headers['retry-after']).toBeUndefined()
    const deleted = await bench.call('DELETE', `/v1/sessions/${first}`)
    expect([deleted.status, deleted.body]).toEqual(
      profile === 'a' ? [200, { object: 'session', id: first, deleted: true }] : [204, {}],
    )
    await bench.session()
    expect(codeOf(await bench.call('GET', `/v1/sessions/${first}`))).toBe('not_found')
  })

  it('a deleted session ends what it was doing', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'hang')
    await until(async () => ((await bench.turns(id)).length === 1 ? true : undefined))
    await bench.call('DELETE', `/v1/sessions/${id}`)
    expect((await bench.send(id, 'hello')).status).toBe(404)
    const before = bench.emulator.ledger().last_seq
    await bench.emulator.advance(3 * 3_600_000)
    expect(bench.emulator.ledger().last_seq).toBe(before)
  })

  it('SES-93 SES-94 SES-95 SES-126 SES-127 SES-128 a fork copies the session and spends a slot', async () => {
    const bench = await open(profile, { limits: { sessions: 3 } })
    const id = await bench.session({ title: 'origin', metadata: { a: 'b' } })
    const early = await bench.call('POST', `/v1/sessions/${id}/fork`)
    expect([early.status, early.body['workspace_copied']]).toEqual([201, false])
    await talk(bench, id, 'write a.txt x')
    const fork = await bench.call('POST', `/v1/sessions/${id}/fork`)
    expect(fork.body).toMatchObject({ forked_from: id, workspace_copied: true })
    const copy = String(fork.body[profile === 'a' ? 'id' : 'session_id'])
    expect('status' in fork.body).toBe(profile === 'a')
    expect(await bench.read(copy)).toMatchObject({ title: 'origin', metadata: { a: 'b' }, status: 'idle' })
    for (const refused of [
      await bench.call('POST', `/v1/sessions/${id}/fork`),
      await bench.call('POST', '/v1/sessions', {}),
    ]) {
      expect([refused.status, codeOf(refused)]).toEqual([429, 'project_limit_exceeded'])
    }
    await talk(bench, copy, 'say hello')
    const query = `?${bench.details.files.snapshotQuery}=1`
    expect(rowsOf((await bench.call('GET', `/v1/sessions/${copy}/files${query}`)).body)).toHaveLength(1)
    await bench.call('PATCH', `/v1/sessions/${copy}`, { metadata: { a: 'c' } })
    expect((await bench.read(id))['metadata']).toEqual({ a: 'b' })
    expect((await bench.call('POST', `/v1/sessions/${id}/fork`, { title: 'x' })).status).toBe(400)
  })
})
