import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { startServer } from '../support/service/server.ts'
import { all, faultOf, PROFILES, stand, until } from './support.ts'

describe.each(PROFILES)('every operation (profile %s)', (profile) => {
  it('returns the permissions of the token', async () => {
    const { client } = await stand(profile)
    const health = await client.health()
    expect(health).toMatchObject({ object: 'health', status: 'ok', version: 'v1', usable: true })
    expect(health.scopes).toContain('sessions:write')
    expect(health.missing_scopes).toEqual([])
  })

  it('creates a session with all that it takes, reads it, changes it, lists it, deletes it', async () => {
    const { client } = await stand(profile)
    const session = await client.sessions.create({
      title: 'Order 42',
      metadata: { order: '42' },
      agent: {
        instructions: 'Be brief.',
        permission_rules: [{ decision: 'deny', command: 'rm *' }],
        tools: [{ type: 'function', name: 'lookup', parameters: { type: 'object' } }],
      },
      environment: { files: [{ path: 'notes.txt', content: 'hello' }] },
      input: 'say Hi',
      text: { verbosity: 'low' },
    })
    expect(session).toMatchObject({ title: 'Order 42', metadata: { order: '42' }, source: 'api' })
    expect(session.agent.permission_rules).toEqual([{ decision: 'deny', command: 'rm *' }])
    expect(session.environment.repo.branch).toBeNull()
    expect((await client.sessions.get(session.id)).agent.tools).toMatchObject([
      { type: 'function', name: 'lookup' },
    ])
    const [turn] = await until(async () => {
      const turns = await all(client.turns.list(session.id))
      return turns.length > 0 ? turns : undefined
    })
    await client.turns.wait(session.id, turn?.id ?? '', { interval: 10 })
    const items = await all(client.items.list(session.id, { order: 'asc' }))
    expect(items.map(({ detail, content }) => [detail.event, content])).toEqual(
      expect.arrayContaining([
        ['user.message', 'say Hi'],
        ['agent.message', 'Hi'],
      ]),
    )
    const changed = await client.sessions.update(session.id, {
      title: 'Another',
      agent: { approval_mode: 'read_only' },
    })
    expect(changed).toMatchObject({ title: 'Another', agent: { approval_mode: 'read_only' } })
    await client.sessions.create({ metadata: { order: '43' } })
    const found = await all(client.sessions.list({ metadata: { order: '42' }, status: 'idle' }))
    expect(found.map(({ id }) => id)).toEqual([session.id])
    await client.sessions.delete(session.id)
    expect(await faultOf(client.sessions.get(session.id))).toMatchObject({
      code: 'not_found',
      status: 404,
      operation: 'readSession',
      requestId: expect.any(String),
    })
  })

  it('sends, queues, steers and cancels', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect(await client.sessions.send(id, 'hang')).toMatchObject({ queued: false, position: null })
    const turn = await until(async () => (await client.turns.list(id).page()).data[0])
    expect(await client.sessions.send(id, 'say later')).toMatchObject({ queued: true, position: 1 })
    await client.sessions.steer(id, 'say steered')
    await until(async () =>
      (await all(client.items.list(id))).some(({ content }) => content === 'steered') ? true : undefined,
    )
    const second = await client.sessions.create({ input: 'hang' })
    const working = await until(async () => (await client.turns.list(second.id).page()).data[0])
    await client.turns.cancel(second.id, working.id)
    const ended = await client.turns.wait(second.id, working.id, { interval: 10 })
    expect(['cancelled', 'interrupted']).toContain(ended.status)
    expect(ended.completed_at).toEqual(expect.any(Number))
    expect((await client.turns.get(id, turn.id)).id).toBe(turn.id)
    expect(await faultOf(client.sessions.steer(second.id, 'say nothing'))).toMatchObject({ code: 'conflict' })
  })

  it('answers function calls with text, with JSON, with an error, and reports lost ones', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create({
      input: 'call one {"a":1}\ncall two\ncall three\ncall four',
    })
    const given = [{ output: 'plain' }, { output: { state: 'shipped' } }, { error: 'It did not work.' }]
    for (const answer of given) {
      const [action] = await required(id)
      expect(action?.type).toBe('function_call')
      const receipt = await client.actions.answer(id, action?.call_id ?? '', answer)
      expect(['delivered', 'accepted']).toContain(receipt.outcome)
    }
    const [last] = await required(id)
    emulator.faults.set({ not_delivered: 1 })
    expect((await client.actions.answer(id, last?.call_id ?? '', { output: '' })).outcome).toBe(
      'not_delivered',
    )
    expect(emulator.ledger().answers.map(({ output, error }) => output ?? error)).toEqual([
      'plain',
      '{"state":"shipped"}',
      'It did not work.',
      '',
    ])

    async function required(session: string) {
      return until(async () => {
        const { required_actions: actions } = await client.sessions.get(session)
        return actions.length > 0 ? actions : undefined
      })
    }
  })

  it('reads tools, replaces them, and sends back what it read', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect((await client.tools.get(id)).text).toBeNull()
    const { tools } = await client.tools.replace(id, {
      tools: [{ type: 'mcp', name: 'tickets', url: 'https://mcp.example.com' }, { type: 'web_search' }],
      text: { verbosity: 'low' },
    })
    const again = await client.tools.replace(id, { tools })
    expect(again.tools).toEqual(tools)
    expect(again.text?.verbosity).toBe('low')
  })

  it('forks, publishes a preview and takes it down', async () => {
    const { client } = await stand(profile, { previewDomain: 'preview.example' })
    const { id } = await client.sessions.create({ title: 'first' })
    const fork = await client.sessions.fork(id)
    expect(fork).toMatchObject({ forked_from: id, workspace_copied: false })
    expect((await client.sessions.get(fork.session_id ?? '')).title).toBe('first')
    const published = await client.previews.publish(id, { port: 8080 })
    expect(published.published_url).toBe(`https://${id}.preview.example`)
    expect((await client.sessions.get(id)).preview).toMatchObject({ port: 8080 })
    expect((await client.previews.unpublish(id)).published_url).toBeNull()
  })

  it('says that a preview cannot be published without a domain', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect(await faultOf(client.previews.publish(id))).toMatchObject({ code: 'not_found' })
  })

  it('writes files once the workspace is ready, takes snapshots, lists and reads', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect(await client.files.list(id)).toMatchObject({ state: 'missing', captured_at: null, data: [] })
    const written = await client.files.write(id, [
      { path: 'a.txt', content: 'hello' },
      { path: 'b.bin', content: Uint8Array.of(0xff, 0, 0xfe) },
    ])
    expect(written).toMatchObject([
      { path: 'a.txt', size_bytes: 5 },
      { path: 'b.bin', size_bytes: 3 },
    ])
    expect(await client.files.refresh(id)).toMatchObject({ state: 'ready', captured_at: expect.any(Number) })
    await client.files.write(id, [{ path: 'c.txt', content: 'later' }])
    expect((await client.files.list(id)).data).toHaveLength(2)
    const listing = await client.files.list(id, { refresh: true })
    expect(listing).toMatchObject({ state: 'ready', truncated: false })
    expect(listing.data.map(({ path, size_bytes }) => [path, size_bytes])).toEqual([
      ['a.txt', 5],
      ['b.bin', 3],
      ['c.txt', 5],
    ])
    expect(await client.files.read(id, 'a.txt')).toMatchObject({ content: 'hello', encoding: 'utf8' })
    expect(await client.files.read(id, 'b.bin')).toMatchObject({ content: '/wD+', encoding: 'base64' })
    expect(await faultOf(client.files.read(id, 'none'))).toMatchObject({ code: 'not_found' })
  })

  it('lists, downloads and deletes artifacts, one by one and as an archive', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    const turn = await client.run(id, 'write outputs/report.txt some text', { interval: 10 })
    expect(turn).toMatchObject({ status: 'completed', artifacts: 'ready', artifacts_skipped: [] })
    const [artifact] = await all(client.artifacts.list(id))
    const bytes = await client.artifacts.download(id, artifact?.id ?? '')
    expect(bytes.size).toBe(9)
    expect(await new Response(bytes.body).text()).toBe('some text')
    const archive = await client.artifacts.archive(id)
    expect(archive.contentType).toMatch(/^application\/x-tar/)
    expect(await new Response(archive.body).text()).toContain('some text')
    await client.artifacts.delete(id, artifact?.id ?? '')
    expect(await all(client.artifacts.list(id))).toEqual([])
    expect(await faultOf(client.artifacts.download(id, artifact?.id ?? ''))).toMatchObject({
      code: 'not_found',
      operation: 'readArtifact',
    })
  })

  it('subscribes to webhooks', async () => {
    const { client } = await stand(profile)
    const webhook = await client.webhooks.create({
      url: 'https://example.com/hook',
      events: ['turn.completed'],
    })
    expect(webhook.secret).toEqual(expect.any(String))
    expect(await all(client.webhooks.list())).toMatchObject([
      { id: webhook.id, events: ['turn.completed'], active: true, secret: null },
    ])
    expect(
      await faultOf(client.webhooks.create({ url: 'https://example.com/hook', events: ['turn.completed'] })),
    ).toMatchObject({ code: 'conflict' })
    await client.webhooks.delete(webhook.id)
    expect(await all(client.webhooks.list())).toEqual([])
  })

  it('connects and disconnects models', async () => {
    const { client } = await stand(profile)
    expect((await all(client.connectors.list())).map(({ id }) => id)).toContain('northwind')
    const credential = await client.credentials.connect({ key: 'nw-secret-1234', label: 'ours' })
    expect(credential).toMatchObject({ label: 'ours', last4: '1234', verified: true, is_default: false })
    expect((await all(client.credentials.list())).map(({ id }) => id)).toContain(credential.id)
    await client.sessions.create({ agent: { model_credential_id: credential.id } })
    expect(await client.credentials.disconnect(credential.id)).toMatchObject({
      sessions_moved: 1,
      moved_to: expect.any(String),
    })
    expect(await faultOf(client.credentials.connect({ key: 'sk-which' }))).toMatchObject({ status: 400 })
  })

  it('saves agents, and reads them as templates, too', async () => {
    const { client } = await stand(profile)
    const agent = await client.agents.save({ name: 'clerk', instructions: 'Be kind.' })
    expect(await client.agents.get(agent.id)).toMatchObject({ name: 'clerk', instructions: 'Be kind.' })
    expect((await client.agents.save({ name: 'clerk' })).id).toBe(agent.id)
    expect((await all(client.agents.list())).map(({ instructions }) => instructions)).toEqual([''])
    expect(await client.templates.get(agent.id)).toMatchObject({
      object: 'environment_template',
      name: 'clerk',
    })
    const session = await client.sessions.create({ agent: { id: agent.id } })
    expect(session.agent.id).toBe(agent.id)
    await client.agents.delete(agent.id)
    expect(await faultOf(client.agents.get(agent.id))).toMatchObject({ code: 'not_found' })
    expect(await all(client.profiles.list())).toMatchObject([
      { name: 'default', is_default: true, variable_count: 0 },
    ])
  })

  it('finds every operation in the description, except those that this service does not have', async () => {
    const { client } = await stand(profile)
    const { routes, ...found } = await client.discover()
    const missing = Object.entries(routes).flatMap(([name, route]) => (route.found ? [] : [name]))
    expect(missing.filter((name) => name !== 'saveTemplate')).toEqual([])
    expect(found.snapshotParameter).toBe(profile === 'a' ? 'refresh' : 'snapshot')
    expect(found.portField).toBe(profile === 'a' ? 'port' : 'service_port')
    expect(found.steerBody).toMatchObject({ type: 'input.steer' })
  })
})

it('saves a template where the description has a place for it', async () => {
  const server = await startServer(({ path }) =>
    path === '/v1/openapi.json'
      ? {
          body: {
            paths: {
              '/v1/environment-templates': {
                post: {
                  parameters: [{ name: 'Idempotency-Key', in: 'header' }],
                  requestBody: {
                    content: { 'application/json': { schema: { properties: { name: {}, tools: {} } } } },
                  },
                },
              },
            },
          },
        }
      : { status: 201, body: { object: 'environment_template', id: 'tpl_1', name: 'clerk' } },
  )
  const client = createClient({ baseUrl: server.url, token: 'svc_pat_one' })
  onTestFinished(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  expect(await client.templates.save({ name: 'clerk', tools: [] })).toMatchObject({ id: 'tpl_1', tools: [] })
  expect(server.asked.at(-1)).toMatchObject({
    method: 'POST',
    path: '/v1/environment-templates',
    body: '{"name":"clerk","tools":[]}',
    headers: { 'idempotency-key': expect.any(String) },
  })
})
