import { describe, expect, it } from 'vitest'
import { messageOf, open, PROFILES, rowsOf, type Bench, type Reply } from './support.ts'

const save = (bench: Bench, body: unknown): Promise<Reply> =>
  bench.call('POST', bench.details.paths.saveAgent, body)

describe.each(PROFILES)('saved agents, profile %s', (profile) => {
  it('AGT-01 AGT-06 AGT-08 AGT-10 AGT-11 AGT-13 AGT-14 AGT-15 AGT-17 AGT-27 AGT-28 AGT-33 AGT-38 saves, reads and lists', async () => {
    const bench = await open(profile)
    const tools = [{ type: 'mcp', name: 'm', url: 'https://m.example', headers: { Key: 'hidden' } }]
    const saved = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools,
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
      tools: [
        { type: 'mcp', name: 'm', url: 'https://m.example', required: false, redacted: ['headers.Key'] },
      ],
      text: { verbosity: 'low' },
      created_at: expect.any(Number),
    })
    expect((await bench.call('GET', `/v1/agents/${String(saved.body['id'])}`)).body).toEqual(saved.body)
    expect(rowsOf((await bench.call('GET', '/v1/agents')).body)).toEqual([saved.body])
    expect((await bench.call('GET', '/v1/agents?order=asc')).status).toBe(400)
    expect((await bench.call('GET', '/v1/agents/none')).status).toBe(404)
  })

  it('AGT-35 AGT-36 AGT-37 AGT-39 a name in use is replaced in place, and a read-back body is refused', async () => {
    const bench = await open(profile)
    const tools = [{ type: 'mcp', name: 'm', url: 'https://m.example', headers: { Key: 'x' } }]
    const first = await save(bench, { name: 'support', instructions: 'Be kind.', tools })
    const second = await save(bench, { name: 'support' })
    expect(second.body).toMatchObject({ id: first.body['id'], instructions: '' })
    expect(messageOf(await save(bench, { name: 'other', tools: first.body['tools'] }))).toContain('redacted')
    expect((await save(bench, { name: 'Not a slug' })).status).toBe(400)
    expect((await save(bench, { name: 'long', instructions: 'x'.repeat(32_001) })).status).toBe(400)
  })

  it('LIM-17 LIM-18 at the ceiling only a name in use may be saved', async () => {
    const bench = await open(profile, { limits: { savedAgents: 1 } })
    await save(bench, { name: 'one' })
    expect((await save(bench, { name: 'two' })).status).toBe(400)
    expect((await save(bench, { name: 'one', instructions: 'x' })).status).toBe(201)
  })

  it('AGT-03 AGT-04 AGT-05 AGT-07 SES-68 SES-110 SES-112 SES-113 SES-114 a session copies an agent, overridden field by field', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, {
      name: 'support',
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
      text: { verbosity: 'low' },
    })
    const plain = await bench.session({ agent: { id: agent['id'] } })
    const changed = await bench.session({ agent: { id: agent['id'], instructions: 'Be brief.', tools: [] } })
    await save(bench, { name: 'support', instructions: 'Be rude.' })
    const gone = await bench.call(
      'DELETE',
      bench.details.paths.deleteAgent.replace('{agent_id}', String(agent['id'])),
    )
    expect(gone.status).toBe(200)
    expect((await bench.read(plain))['agent']).toMatchObject({
      id: agent['id'],
      instructions: 'Be kind.',
      tools: [{ type: 'browse' }],
    })
    expect((await bench.read(changed))['agent']).toMatchObject({ instructions: 'Be brief.', tools: [] })
    expect((await bench.call('GET', `/v1/sessions/${plain}/tools`)).body['text']).toMatchObject({
      verbosity: 'low',
    })
    const refused = await bench.call('POST', '/v1/sessions', { agent: { id: agent['id'] } })
    expect(messageOf(refused)).toContain(String(agent['id']))
  })

  it('SES-111 an inline connection takes the place of the saved model', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, { name: 'support' })
    const { body: made } = await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })
    const id = await bench.session({ agent: { id: agent['id'], model_credential_id: made['id'] } })
    expect((await bench.read(id))['agent']).toMatchObject({ id: agent['id'], model: 'northwind-large' })
  })

  it('AGT-02 AGT-18 AGT-19 AGT-20 AGT-21 AGT-31 VER-13 the template is the agent without model and instructions, and deprecated', async () => {
    const bench = await open(profile)
    const { body: agent } = await save(bench, { name: 'support' })
    const { model: _m, model_credential_id: _c, instructions: _i, ...rest } = agent
    const template = await bench.call('GET', `/v1/environment-templates/${String(agent['id'])}`)
    expect(template.body).toEqual({ ...rest, object: 'environment_template' })
    const doc = await bench.call('GET', '/v1/openapi.json')
    expect(doc.body).toMatchObject({
      paths: { '/v1/environment-templates/{template_id}': { get: { deprecated: true } } },
    })
  })

  it('AGT-22 AGT-23 AGT-24 AGT-25 AGT-26 AGT-32 LIM-71 SES-79 lists environment profiles, which sessions name', async () => {
    const bench = await open(profile)
    const [one] = rowsOf((await bench.call('GET', '/v1/environment-profiles')).body)
    expect(one).toEqual({
      object: 'environment_profile',
      id: expect.any(String),
      name: 'default',
      is_default: true,
      variable_count: 0,
    })
    const id = await bench.session({ environment: { profiles: [one?.['id']] } })
    expect((await bench.read(id))['environment']).toMatchObject(
      profile === 'a' ? { profiles: [one?.['id']] } : {},
    )
    const refused = await bench.call('POST', '/v1/sessions', { environment: { profiles: ['envp_none'] } })
    expect(messageOf(refused)).toContain('envp_none')
  })
})
