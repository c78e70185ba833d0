import { describe, expect, it } from 'vitest'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  type Bench,
  type Fields,
  type Reply,
} from '../emulator/support.ts'

const save = (bench: Bench, body: unknown): Promise<Reply> =>
  bench.call('POST', bench.details.paths.saveAgent, body)

const saveTemplate = (bench: Bench, body: unknown): Promise<Reply> =>
  bench.call('POST', bench.details.paths.saveTemplate, body)

const read = (bench: Bench, id: unknown): Promise<Reply> => bench.call('GET', `/v1/agents/${String(id)}`)

const readTemplate = (bench: Bench, id: unknown): Promise<Reply> =>
  bench.call('GET', `/v1/environment-templates/${String(id)}`)

const remove = (bench: Bench, kind: 'Agent' | 'Template', id: unknown): Promise<Reply> =>
  bench.call('DELETE', bench.details.paths[`delete${kind}`].replace(/\{\w+\}/, String(id)))

const SERVER = { type: 'mcp', name: 'm', url: 'https://m.example' }
const SECRET = { ...SERVER, headers: { Key: 'hidden' } }
const WITHHELD = { ...SERVER, required: false, redacted: ['headers.Key'] }

describe.each(PROFILES)('saved agents, profile %s', (profile) => {
  it('AGT-01 AGT-06 AGT-08 AGT-10 AGT-11 AGT-13 AGT-14 AGT-15 AGT-16 AGT-17 AGT-27 AGT-33 AGT-38 are created at the place that the profile has and read back, secrets withheld', async () => {
    const bench = await open(profile)
    expect(bench.details.paths.saveAgent).toBe(profile === 'a' ? '/v1/agents' : '/v1/agent-definitions')
    const before = bench.emulator.now()
    const saved = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [SECRET],
      text: { verbosity: 'low' },
    })
    expect(saved.status).toBe(201)
    expect(saved.body).toEqual({
      object: 'agent',
      id: expect.any(String),
      name: 'support',
      model: 'demo',
      model_credential_id: null,
      instructions: 'Be kind.',
      tools: [WITHHELD],
      text: { verbosity: 'low' },
      created_at: expect.any(Number),
    })
    expect(saved.body['created_at']).toBeGreaterThanOrEqual(before)
    expect((await read(bench, saved.body['id'])).body).toEqual(saved.body)
    expect(saved.text).not.toContain('hidden')
    const plain = await save(bench, { name: 'plain' })
    expect(plain.body).toMatchObject({ instructions: '', text: {} })
    expect((await read(bench, 'none')).status).toBe(404)
  })

  it('VER-15 the tools of an agent that has none of its own are one array of the default set, each with a type', async () => {
    const bench = await open(profile)
    const { body } = await save(bench, { name: 'plain' })
    const tools = rowsOf(body['tools'])
    expect(tools.map(({ type }) => type)).toContain('web_search')
    expect((await save(bench, { name: 'bare', tools: [] })).body['tools']).toEqual([])
  })

  it('AGT-28 AGT-29 AGT-30 AGT-34 are listed under /v1/agents a page at a time, without an order to choose', async () => {
    const bench = await open(profile)
    const saved = []
    for (const name of ['one', 'two', 'three']) saved.push((await save(bench, { name })).body)
    const first = (await bench.call('GET', '/v1/agents?limit=2')).body
    expect(first).toMatchObject({ object: 'list', has_more: true })
    const rest = (await bench.call('GET', `/v1/agents?after=${String(first['last_id'])}`)).body
    expect([...rowsOf(first), ...rowsOf(rest)]).toEqual(saved.toReversed())
    expect((await bench.call('GET', '/v1/agents?order=asc')).status).toBe(400)
    const creating = await bench.call('POST', '/v1/agents', { name: 'four' })
    expect(creating.status).toBe(profile === 'a' ? 201 : 404)
  })

  it('AGT-09 a name is a slug and no identifier', async () => {
    const bench = await open(profile)
    const { body } = await save(bench, { name: 'support' })
    expect(body['id']).not.toBe('support')
    expect((await read(bench, 'support')).status).toBe(404)
    const refused = await bench.call('POST', '/v1/sessions', { agent: { id: 'support' } })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('"support"')])
    for (const name of ['Not a slug', '', 'x'.repeat(65)])
      expect((await save(bench, { name })).status).toBe(400)
  })

  it('AGT-12 without a connection of its own an agent runs on the default of the time', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, { name: 'support' })
    const connect = (key: string, provider: string) =>
      bench.call('POST', '/v1/model-credentials', { key, provider, is_default: true })
    const { body: northwind } = await connect('nw-1', 'northwind')
    const id = await bench.session({ agent: { id: agent['id'] } })
    const settings = { model: 'northwind-large', model_credential_id: northwind['id'] }
    expect((await bench.read(id))['agent']).toMatchObject(settings)
    expect((await read(bench, agent['id'])).body).toMatchObject({
      model: 'northwind-large',
      model_credential_id: null,
    })
    await connect('sk-1', 'contoso')
    const { body: named } = await save(bench, { name: 'named', model_credential_id: northwind['id'] })
    expect(named).toMatchObject(settings)
    const other = await bench.session({ agent: { id: named['id'] } })
    expect((await bench.read(other))['agent']).toMatchObject(settings)
    const refused = await save(bench, { name: 'stray', model_credential_id: 'mcred_none' })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('mcred_none')])
  })

  it('AGT-35 AGT-36 AGT-37 a name in use is replaced in place: the id stays, what is left out is gone', async () => {
    const bench = await open(profile)
    const first = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [],
      text: { verbosity: 'low' },
    })
    await save(bench, { name: 'other' })
    const second = await save(bench, { name: 'support' })
    const { id, created_at } = first.body
    expect(second.body).toMatchObject({ id, created_at, instructions: '', text: {} })
    expect(second.body['tools']).not.toEqual([])
    expect((await read(bench, id)).body).toEqual(second.body)
    expect(rowsOf((await bench.call('GET', '/v1/agents')).body)).toHaveLength(2)
  })

  it('AGT-39 ERR-14 a body that was read back is refused for its redacted', async () => {
    const bench = await open(profile)
    const { body } = await save(bench, { name: 'support', tools: [SECRET] })
    for (const sent of [
      { name: 'other', tools: body['tools'] },
      { name: 'other', redacted: ['x'] },
    ]) {
      const refused = await save(bench, sent)
      expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
      expect(messageOf(refused)).toContain('redacted')
    }
  })

  it('LIM-19 instructions have at most 32000 characters', async () => {
    const bench = await open(profile)
    expect((await save(bench, { name: 'long', instructions: 'x'.repeat(32_000) })).status).toBe(201)
    const refused = await save(bench, { name: 'longer', instructions: 'x'.repeat(32_001) })
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
  })
})

describe.each(PROFILES)('sessions made from what was saved, profile %s', (profile) => {
  it('AGT-03 AGT-04 AGT-05 AGT-07 SES-68 a session copies an agent, and neither a change nor a deletion of it matters later', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
      text: { verbosity: 'low' },
    })
    const id = await bench.session({ agent: { id: agent['id'] } })
    const session = await bench.read(id)
    expect(session['agent']).toMatchObject({
      id: agent['id'],
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
    })
    const tools = (await bench.call('GET', `/v1/sessions/${id}/tools`)).body
    expect(tools['text']).toMatchObject({ verbosity: 'low' })
    await save(bench, { name: 'support', instructions: 'Be rude.' })
    expect(await bench.read(id)).toEqual(session)
    expect((await remove(bench, 'Agent', agent['id'])).body).toMatchObject({ deleted: true })
    expect(await bench.read(id)).toEqual(session)
    expect((await bench.call('GET', `/v1/sessions/${id}/tools`)).body).toEqual(tools)
    const refused = await bench.call('POST', '/v1/sessions', { agent: { id: agent['id'] } })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining(String(agent['id']))])
  })

  it('SES-110 SES-111 SES-112 SES-113 SES-114 what stands beside the id goes before what was saved', async () => {
    const bench = await open(profile)
    const { body: northwind } = await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })
    const { body: agent } = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
      text: { verbosity: 'low' },
    })
    const made = async (beside: Fields, text: Fields = {}) =>
      (await bench.read(await bench.session({ agent: { id: agent['id'], ...beside }, ...text })))['agent']
    expect(await made({ instructions: 'Be brief.', tools: [] })).toMatchObject({
      instructions: 'Be brief.',
      tools: [],
      model: 'demo',
    })
    const settings = { model: 'northwind-large', model_credential_id: northwind['id'] }
    expect(await made({ model: 'northwind-large' })).toMatchObject({ ...settings, instructions: 'Be kind.' })
    expect(await made({ model_credential_id: northwind['id'] })).toMatchObject(settings)
    const id = await bench.session({ agent: { id: agent['id'] }, text: {} })
    expect((await bench.call('GET', `/v1/sessions/${id}/tools`)).body['text']).not.toMatchObject({
      verbosity: 'low',
    })
  })

  it('AGT-03 AGT-04 AGT-05 a session copies a template in the same way', async () => {
    const bench = await open(profile)
    const { body: template } = await saveTemplate(bench, { name: 'bench', tools: [{ type: 'browse' }] })
    const id = await bench.session({ agent: { id: template['id'], instructions: 'Be kind.' } })
    const session = await bench.read(id)
    expect(session['agent']).toMatchObject({
      id: template['id'],
      model: 'demo',
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
    })
    await saveTemplate(bench, { name: 'bench', tools: [] })
    expect((await remove(bench, 'Template', template['id'])).status).toBe(200)
    expect(await bench.read(id)).toEqual(session)
    expect((await readTemplate(bench, template['id'])).status).toBe(404)
  })
})

describe.each(PROFILES)('environment templates, profile %s', (profile) => {
  it('AGT-02 AGT-18 AGT-19 AGT-20 AGT-21 AGT-31 VER-13 are the agent without model and instructions, deprecated', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, { name: 'support', instructions: 'x', tools: [SECRET] })
    const { model: _m, model_credential_id: _c, instructions: _i, ...rest } = agent
    expect((await readTemplate(bench, agent['id'])).body).toEqual({ ...rest, object: 'environment_template' })
    const doc = await bench.call('GET', '/v1/openapi.json')
    expect(doc.body).toMatchObject({
      paths: { '/v1/environment-templates/{template_id}': { get: { deprecated: true } } },
    })
  })

  it('LIM-17 LIM-18 are saved under a name, which replaces, at the place that the profile has, up to 25', async () => {
    const bench = await open(profile)
    const made = await saveTemplate(bench, { name: 't1', tools: [SECRET], text: { verbosity: 'low' } })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      object: 'environment_template',
      id: expect.any(String),
      name: 't1',
      tools: [WITHHELD],
      text: { verbosity: 'low' },
      created_at: expect.any(Number),
    })
    expect((await saveTemplate(bench, { name: 't1' })).body).toMatchObject({ id: made.body['id'], text: {} })
    for (const field of ['model', 'model_credential_id', 'instructions'])
      expect((await saveTemplate(bench, { name: 'x', [field]: 'x' })).status).toBe(400)
    for (let count = 2; count <= 25; count++) await saveTemplate(bench, { name: `t${count}` })
    const full = await saveTemplate(bench, { name: 't26' })
    expect([full.status, codeOf(full)]).toEqual([400, 'invalid_request'])
    expect((await saveTemplate(bench, { name: 't7', tools: [] })).status).toBe(201)
    // The ceiling holds for agents and templates together, or for each.
    expect((await save(bench, { name: 'agent' })).status).toBe(profile === 'a' ? 400 : 201)
    await remove(bench, 'Template', made.body['id'])
    expect((await saveTemplate(bench, { name: 't26' })).status).toBe(201)
  })

  it('AGT-21 AGT-31 a template is an agent by another name, or stands apart, as the profile has it', async () => {
    const bench = await open(profile)
    const { body: template } = await saveTemplate(bench, { name: 'shared' })
    const { body: agent } = await save(bench, { name: 'shared', instructions: 'x' })
    expect(agent['id'] === template['id']).toBe(profile === 'a')
    const listed = rowsOf((await bench.call('GET', '/v1/agents')).body)
    expect(listed.map(({ id }) => id)).toEqual([agent['id']])
    expect((await read(bench, template['id'])).status).toBe(profile === 'a' ? 200 : 404)
  })
})

describe.each(PROFILES)('environment profiles, profile %s', (profile) => {
  it('AGT-22 AGT-23 AGT-24 AGT-25 AGT-26 AGT-32 LIM-71 SES-79 are listed, and named by sessions', async () => {
    const bench = await open(profile)
    const place = '/v1/environment-profiles'
    const [one] = rowsOf((await bench.call('GET', `${place}?limit=1`)).body)
    expect(one).toEqual({
      object: 'environment_profile',
      id: expect.any(String),
      name: 'default',
      is_default: true,
      variable_count: 0,
    })
    const rest = (await bench.call('GET', `${place}?after=${String(one?.['id'])}`)).body
    expect([rowsOf(rest), rest['has_more']]).toEqual([[], false])
    expect((await bench.call('GET', `${place}?order=asc`)).status).toBe(400)
    const id = await bench.session({ environment: { profiles: [one?.['id']] } })
    const environment = (await bench.read(id))['environment'] as Fields
    expect(environment['profiles']).toEqual(profile === 'a' ? [one?.['id']] : undefined)
    const refused = await bench.call('POST', '/v1/sessions', { environment: { profiles: ['envp_none'] } })
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('envp_none')])
  })
})
