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

const PLACE = '/v1/model-credentials'

const connect = (bench: Bench, body: unknown): Promise<Reply> => bench.call('POST', PLACE, body)

/** Connects and gives the id. */
const connected = async (bench: Bench, body: unknown): Promise<string> => {
  const reply = await connect(bench, body)
  expect(reply.status).toBe(201)
  return String(reply.body['id'])
}

const listed = async (bench: Bench): Promise<Fields[]> => rowsOf((await bench.call('GET', PLACE)).body)

const disconnect = (bench: Bench, id: unknown): Promise<Reply> => {
  const { method, path } = bench.details.disconnect
  return bench.call(method, path.replace('{credential_id}', String(id)))
}

/** What the session runs on. */
const modelOf = async (bench: Bench, id: string) => {
  const { model, model_credential_id } = (await bench.read(id))['agent'] as Fields
  return { model, model_credential_id }
}

/** The connection that is there from the start. */
const demoOf = async (bench: Bench) => (await listed(bench)).find(({ model }) => model === 'demo')?.['id']

describe.each(PROFILES)('model connectors, profile %s', (profile) => {
  it('MOD-15 MOD-16 MOD-17 MOD-18 MOD-19 are listed with what a client sends, and a name where the profile puts it', async () => {
    const bench = await open(profile)
    const reply = await bench.call('GET', '/v1/model-connectors')
    expect(reply.body).toMatchObject({ object: 'list', has_more: false })
    const connectors = rowsOf(reply.body)
    const name = profile === 'a' ? 'name' : 'display_name'
    expect(connectors.find(({ id }) => id === 'northwind')).toEqual({
      object: 'model_connector',
      id: 'northwind',
      [name]: 'Northwind',
      default_model: 'northwind-large',
      key_prefix: 'nw-',
    })
    const shared = connectors.filter(({ key_prefix }) => key_prefix === 'sk-')
    expect(shared.map(({ id }) => id)).toEqual(['contoso', 'fabrikam'])
    for (const { id, default_model } of connectors) {
      expect((await connect(bench, { key: 'any', provider: id })).body['model']).toBe(default_model)
    }
    expect((await bench.call('GET', '/v1/model-connectors?limit=1')).status).toBe(400)
  })
})

describe.each(PROFILES)('connecting a model, profile %s', (profile) => {
  it('MOD-01 MOD-02 MOD-04 MOD-05 MOD-06 MOD-07 MOD-09 MOD-11 MOD-21 MOD-26 MOD-32 answers the connection, named after its provider', async () => {
    const bench = await open(profile)
    const made = await connect(bench, { key: 'nw-secret-1234' })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      object: 'model_credential',
      id: expect.any(String),
      model: 'northwind-large',
      label: 'Northwind',
      connector: 'northwind',
      is_default: false,
      last4: '1234',
      verified: true,
    })
  })

  it('MOD-22 MOD-23 MOD-24 MOD-25 MOD-27 takes a provider, a model, an address, a label and whether it is the default', async () => {
    const bench = await open(profile)
    const made = await connect(bench, {
      key: 'sk-1',
      provider: 'contoso',
      model: 'contoso-small',
      base_url: 'https://models.internal.example',
      label: 'ours',
      is_default: true,
    })
    expect(made.body).toMatchObject({
      connector: 'contoso',
      model: 'contoso-small',
      label: 'ours',
      is_default: true,
    })
    for (const body of [{ provider: 'demo' }, { key: 7, provider: 'demo' }, { key: '', provider: 'demo' }]) {
      const refused = await connect(bench, body)
      expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('key')])
    }
    expect(messageOf(await connect(bench, { key: 'nw-1', base_ur: 'x' }))).toContain(
      'did you mean "base_url"?',
    )
  })

  it('MOD-10 MOD-12 MOD-13 MOD-14 shows the end of the key once, and never the key or the address', async () => {
    const bench = await open(profile)
    const secret = { key: 'nw-secret-1234', base_url: 'https://models.internal.example' }
    const made = await connect(bench, secret)
    const list = await bench.call('GET', PLACE)
    expect(rowsOf(list.body).map((row) => Object.keys(row))).toEqual([
      ['object', 'id', 'label', 'model'],
      ['object', 'id', 'label', 'model'],
    ])
    for (const { text } of [made, list, await bench.call('GET', '/v1/sessions')]) {
      for (const value of Object.values(secret)) expect(text).not.toContain(value)
    }
    expect(list.text).not.toContain('1234')
  })

  it('MOD-20 LIM-70 lists a page at a time', async () => {
    const bench = await open(profile)
    for (const key of ['nw-1', 'nw-2']) await connected(bench, { key })
    const first = (await bench.call('GET', `${PLACE}?limit=2`)).body
    expect(first).toMatchObject({ object: 'list', has_more: true })
    const rest = (await bench.call('GET', `${PLACE}?limit=2&after=${String(first['last_id'])}`)).body
    expect(rest['has_more']).toBe(false)
    expect(new Set([...rowsOf(first), ...rowsOf(rest)].map(({ id }) => id)).size).toBe(3)
    expect((await bench.call('GET', `${PLACE}?order=asc`)).status).toBe(400)
  })

  it('MOD-33 MOD-34 MOD-35 a shared prefix identifies no vendor, so no provider is called and the refusal points to the connectors', async () => {
    const bench = await open(profile)
    for (const key of ['sk-rejected', 'unknown-rejected']) {
      const refused = await connect(bench, { key })
      expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
      expect(messageOf(refused)).toContain('GET /v1/model-connectors')
    }
    const stray = await connect(bench, { key: 'nw-rejected', provider: 'unknown' })
    expect(messageOf(stray)).toContain('"unknown"')
    expect(bench.emulator.ledger().probes).toEqual([])
    await connected(bench, { key: 'sk-1', provider: 'fabrikam' })
    expect(bench.emulator.ledger().probes).toMatchObject([{ connector: 'fabrikam' }])
  })

  it('MOD-36 MOD-37 MOD-38 MOD-39 tries a key once with the model that it is to run, and stores none that its provider rejects', async () => {
    const bench = await open(profile)
    const refused = await connect(bench, { key: 'sk-rejected', provider: 'contoso', model: 'contoso-small' })
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    expect(messageOf(refused)).toContain('"Incorrect API key provided."')
    expect(messageOf(refused)).toContain('contoso-small')
    expect(await listed(bench)).toHaveLength(1)
    await connected(bench, { key: 'sk-1', provider: 'contoso' })
    expect(bench.emulator.ledger().probes).toEqual([
      { at: expect.any(Number), connector: 'contoso', model: 'contoso-small', accepted: false },
      { at: expect.any(Number), connector: 'contoso', model: 'contoso-1', accepted: true },
    ])
  })

  it('MOD-40 an is_default that is no boolean is refused', async () => {
    const bench = await open(profile)
    for (const is_default of ['true', 1, null]) {
      const refused = await connect(bench, { key: 'nw-1', is_default })
      expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('is_default')])
    }
    expect(await listed(bench)).toHaveLength(1)
  })

  it('MOD-41 the first connection is the default whatever was asked', async () => {
    const bench = await open(profile)
    await disconnect(bench, await demoOf(bench))
    expect(await listed(bench)).toEqual([])
    expect((await connect(bench, { key: 'nw-1', is_default: false })).body['is_default']).toBe(true)
    expect((await connect(bench, { key: 'nw-2', is_default: false })).body['is_default']).toBe(false)
  })

  it('MOD-42 MOD-43 two models of one vendor are two connections', async () => {
    const bench = await open(profile)
    const large = await connected(bench, { key: 'nw-1' })
    const small = await connected(bench, { key: 'nw-1', model: 'northwind-small' })
    expect(small).not.toBe(large)
    const asked = { model: 'northwind-small', model_credential_id: large }
    const refused = await bench.call('POST', '/v1/sessions', { agent: asked })
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    const id = await bench.session({ agent: { model: 'northwind-small' } })
    expect(await modelOf(bench, id)).toEqual({ model: 'northwind-small', model_credential_id: small })
  })

  it('MOD-49 the same key again is the connection that it is already, also at the ceiling', async () => {
    const bench = await open(profile, { limits: { modelConnections: 2 } })
    const id = await connected(bench, { key: 'nw-1' })
    expect(await connected(bench, { key: 'nw-1', label: 'again' })).toBe(id)
    expect(await listed(bench)).toHaveLength(2)
  })

  it('LIM-15 LIM-16 the ceiling of 25 holds, and its refusal names what frees one', async () => {
    const bench = await open(profile)
    const first = await connected(bench, { key: 'nw-1' })
    for (let count = 2; count < 25; count++) await connected(bench, { key: `nw-${count}` })
    const full = await connect(bench, { key: 'nw-25' })
    expect([full.status, codeOf(full)]).toEqual([400, 'invalid_request'])
    const { method, path } = bench.details.disconnect
    expect(messageOf(full)).toContain(`${method} ${path}`)
    await disconnect(bench, first)
    await connected(bench, { key: 'nw-25' })
  })

  it('MOD-31 AUT-16 AUT-38 GEN-14 connecting needs a scope that driving sessions does not have', async () => {
    const bench = await open(profile)
    const scopes = ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'] as const
    bench.token = bench.emulator.mintToken(scopes).token
    const refused = await connect(bench, { key: 'nw-1' })
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    expect(messageOf(refused)).toContain('credentials:write')
    expect((await disconnect(bench, 'x')).status).toBe(403)
    expect((await bench.call('GET', PLACE)).status).toBe(profile === 'a' ? 200 : 403)
    expect((await bench.call('GET', '/v1/model-connectors')).status).toBe(profile === 'a' ? 200 : 403)
    bench.token = bench.emulator.mintToken(['credentials:write']).token
    await connected(bench, { key: 'nw-1' })
    expect((await bench.call('GET', PLACE)).status).toBe(profile === 'a' ? 403 : 200)
  })
})

describe.each(PROFILES)('sessions and their connections, profile %s', (profile) => {
  it('MOD-03 MOD-08 MOD-44 a session runs on the one that it names, else on the default of that time', async () => {
    const bench = await open(profile)
    const demo = { model: 'demo', model_credential_id: await demoOf(bench) }
    const early = await bench.session()
    const northwind = await connected(bench, { key: 'nw-1', is_default: true })
    const late = await bench.session()
    const named = await bench.session({ agent: { model_credential_id: demo.model_credential_id } })
    expect(await modelOf(bench, early)).toEqual(demo)
    expect(await modelOf(bench, late)).toEqual({
      model: 'northwind-large',
      model_credential_id: northwind,
    })
    expect(await modelOf(bench, named)).toEqual(demo)
  })

  it('MOD-50 a rejected key, a model that the credential does not run, and a credential that is not yours have different errors', async () => {
    const bench = await open(profile)
    const credential = await demoOf(bench)
    const refusals = [
      await connect(bench, { key: 'nw-rejected' }),
      await bench.call('POST', '/v1/sessions', { agent: { model: 'gpt', model_credential_id: credential } }),
      await bench.call('POST', '/v1/sessions', { agent: { model_credential_id: 'mcred_other' } }),
    ]
    const messages = refusals.map(messageOf)
    for (const [at, part] of ['rejected the key', 'does not match', 'not a connection of yours'].entries()) {
      expect(messages.filter((message) => message.includes(part))).toEqual([messages[at]])
    }
    for (const { status } of refusals) expect(status).toBe(400)
  })

  it('MOD-28 MOD-29 MOD-30 MOD-45 a disconnect, at the place that the profile has, moves its sessions to another connection', async () => {
    const bench = await open(profile)
    const demo = await demoOf(bench)
    const moving = await bench.session()
    const northwind = await connected(bench, { key: 'nw-1' })
    const staying = await bench.session({ agent: { model_credential_id: northwind } })
    const { method, path } = bench.details.disconnect
    expect(`${method} ${path}`).toBe(
      profile === 'a'
        ? 'DELETE /v1/model-credentials/{credential_id}'
        : 'POST /v1/model-credentials/{credential_id}/disconnect',
    )
    expect((await disconnect(bench, demo)).body).toEqual({ sessions_moved: 1, moved_to: northwind })
    const after = { model: 'northwind-large', model_credential_id: northwind }
    expect(await modelOf(bench, moving)).toEqual(after)
    expect(await modelOf(bench, staying)).toEqual(after)
    expect(await modelOf(bench, await bench.session())).toEqual(after)
    expect((await disconnect(bench, demo)).status).toBe(404)
  })

  it('MOD-46 MOD-47 MOD-48 SES-96 GEN-13 with none left a session has no model, its next turn says so, and none can be created', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect((await disconnect(bench, await demoOf(bench))).body).toEqual({ sessions_moved: 1, moved_to: null })
    expect(await modelOf(bench, id)).toEqual({ model: null, model_credential_id: null })
    await bench.send(id, 'say hello')
    await bench.reach(id, 'failed')
    expect(String((await bench.items(id)).at(-1)?.['content'])).toContain('no model')
    const refused = await bench.call('POST', '/v1/sessions', {})
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining('no model')])
  })
})
