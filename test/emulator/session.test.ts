import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, rowsOf, until } from './support.ts'

describe.each(PROFILES)('sessions, profile %s', (profile) => {
  it('SES-01 SES-02 SES-03 SES-08 SES-09 SES-12 SES-14 SES-17 SES-21 SES-65 SES-66 creates a session with every field', async () => {
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
      agent: { id: null, model: 'demo', instructions: '', permission_rules: [], tools: expect.any(Array) },
      environment: { type: 'sandbox', state: 'unknown', workspace_directory: '/workspace' },
      preview: { url: null, port: null, published_url: null },
      required_actions: [],
    })
    expect(reply.body['id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Math.abs(Number(reply.body['created_at']) - Date.now())).toBeLessThan(60_000)
    expect(reply.body['environment']).not.toHaveProperty('branch')
    expect(reply.text).not.toContain(bench.token)
  })

  it('ERR-04 GEN-24 GEN-25 refuses an unknown field, names the nearest and lists the accepted ones', async () => {
    const bench = await open(profile)
    const reply = await bench.call('POST', '/v1/sessions', { titel: 'A' })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(messageOf(reply)).toMatch(/"titel".*"title".*agent, title, metadata, environment, input, text/)
    const nested = await bench.call('POST', '/v1/sessions', { agent: { instruction: 'x' } })
    expect(messageOf(nested)).toMatch(/"instruction" in agent; did you mean "instructions"/)
    expect(bench.emulator.ledger().sessions).toEqual([])
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

  it.each([
    [
      'SES-50 an approval mode that does not exist',
      { agent: { approval_mode: 'per_step' } },
      'agent.approval_mode',
    ],
    ['ERR-11 a metadata value that is no string', { metadata: { a: 1 } }, 'metadata.a'],
    ['LIM-22 a metadata value that is too long', { metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
    [
      'SES-60 a rule that cannot be read',
      { agent: { permission_rules: [{ decision: 'perhaps' }] } },
      'decision',
    ],
    [
      'LIM-14 a rule field of 501 characters',
      { agent: { permission_rules: [{ decision: 'allow', tool: 'x'.repeat(501) }] } },
      '500',
    ],
    [
      'LIM-13 51 rules',
      { agent: { permission_rules: Array.from({ length: 51 }, () => ({ decision: 'allow' })) } },
      '50',
    ],
    ['LIM-19 instructions of 32001 characters', { agent: { instructions: 'x'.repeat(32_001) } }, '32000'],
    ['SES-98 ERR-12 a model that is not connected', { agent: { model: 'nope-1' } }, '"nope-1"'],
    [
      'SES-99 ERR-13 a credential that is not ours',
      { agent: { model_credential_id: 'mcred_x' } },
      '"mcred_x"',
    ],
    [
      'SES-104 a repository without a host connection',
      { environment: { repo: { full_name: 'a/b' } } },
      'environment.repo',
    ],
    [
      'TOO-24 a server with both url and command',
      { agent: { tools: [{ type: 'mcp', name: 'm', url: 'https://m.example', command: 'm' }] } },
      'exactly one',
    ],
    ['TOO-25 a server with neither', { agent: { tools: [{ type: 'mcp', name: 'm' }] } }, 'exactly one'],
    [
      'TOO-26 TOO-27 an unknown tool field',
      { agent: { tools: [{ type: 'function', name: 'f', timeout: 3 }] } },
      'timeout_seconds',
    ],
    [
      'TOO-29 ERR-14 a tool that was read back',
      { agent: { tools: [{ type: 'mcp', name: 'm', url: 'https://m.example', redacted: [] }] } },
      'redacted',
    ],
    ['LIM-10 33 tools', { agent: { tools: Array.from({ length: 33 }, () => ({ type: 'browse' })) } }, '32'],
    [
      'LIM-11 a tool name of 65 characters',
      { agent: { tools: [{ type: 'function', name: 'x'.repeat(65) }] } },
      '64',
    ],
    [
      'LIM-12 a deadline of 7201 seconds',
      { agent: { tools: [{ type: 'function', name: 'f', timeout_seconds: 7201 }] } },
      '7200',
    ],
    [
      'ERR-10 a file that is too large',
      {
        environment: {
          files: [{ type: 'inline', path: 'a', data: Buffer.alloc(4_194_305).toString('base64') }],
        },
      },
      'larger than',
    ],
  ])('ERR-06 refuses %s and leaves no session behind', async (_what, body, named) => {
    const bench = await open(profile)
    const reply = await bench.call('POST', '/v1/sessions', body)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(messageOf(reply)).toContain(named)
    expect(bench.emulator.ledger().sessions).toEqual([])
  })

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

  it('SES-121 SES-122 takes a model by PATCH, or refuses the field, as the profile has it', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const reply = await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { model: 'demo' } })
    expect(reply.status).toBe(profile === 'a' ? 200 : 400)
  })

  it('LIM-05 LIM-06 LIM-07 ERR-29 SES-91 holds the ceiling of sessions until one is deleted', async () => {
    const bench = await open(profile, { limits: { sessions: 2 } })
    const first = await bench.session()
    await bench.session()
    const refused = await bench.call('POST', '/v1/sessions', {})
    expect([refused.status, codeOf(refused)]).toEqual([429, 'project_limit_exceeded'])
    expect(refused.headers['retry-after']).toBeUndefined()
    const deleted = await bench.call('DELETE', `/v1/sessions/${first}`)
    expect(deleted.status).toBe(profile === 'a' ? 200 : 204)
    await bench.session()
    expect(codeOf(await bench.call('GET', `/v1/sessions/${first}`))).toBe('not_found')
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
    for (const limit of ['0', '101', '-1', 'ten', '1.5']) {
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
    expect((await bench.call('GET', '/v1/sessions?status=tired')).status).toBe(400)
  })

  it('SES-100 SES-80 takes the first message with the creation', async () => {
    const bench = await open(profile)
    const opening = bench.message('say hello')
    const id = await bench.session({ input: opening })
    await until(async () => ((await bench.turns(id)).length === 1 ? true : undefined))
    await bench.reach(id, 'idle')
    expect(bench.events(id)).toContain('user.message')
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
})
