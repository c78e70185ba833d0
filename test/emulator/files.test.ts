import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, rowsOf, until, type Bench, type Fields } from './support.ts'

const inline = (path: string, text: string | Buffer) => ({
  type: 'inline',
  path,
  data: Buffer.from(text).toString('base64'),
})

const write = (bench: Bench, id: string, ...files: unknown[]) =>
  bench.call('POST', `/v1/sessions/${id}/files`, { files })

/** A session whose workspace is up. */
async function running(bench: Bench): Promise<string> {
  const id = await bench.session()
  await bench.send(id, 'say hello')
  await bench.settle(id)
  return id
}

async function listing(bench: Bench, id: string, query = ''): Promise<Fields> {
  return (await bench.call('GET', `/v1/sessions/${id}/files${query}`)).body
}

describe.each(PROFILES)('workspace files, profile %s', (profile) => {
  const snapshot = profile === 'a' ? '?refresh=1' : '?snapshot=1'

  it('FIL-01 FIL-08 FIL-09 FIL-10 FIL-31 shows that no snapshot was taken yet', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    expect(await listing(bench, id)).toEqual({
      object: 'list',
      data: [],
      state: 'missing',
      captured_at: null,
      truncated: false,
    })
  })

  it('FIL-02 FIL-03 FIL-04 FIL-05 FIL-06 FIL-07 FIL-13 FIL-22 FIL-27 FIL-28 FIL-29 FIL-30 FIL-37 writes, and lists the last snapshot', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    const reply = await write(bench, id, inline('a.txt', 'one'), inline('src/b.bin', Buffer.from([0, 255])))
    expect(reply.status).toBe(200)
    expect(rowsOf(reply.body)).toEqual([
      { object: 'workspace_file', path: 'a.txt', size_bytes: 3 },
      { object: 'workspace_file', path: 'src/b.bin', size_bytes: 2 },
    ])
    const refreshed = await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    expect(refreshed.body).toMatchObject({ state: 'ready', captured_at: expect.any(Number) })
    await write(bench, id, inline('a.txt', 'longer'))
    const before = await listing(bench, id)
    expect(before['data']).toEqual([
      { object: 'workspace_file', path: 'a.txt', type: 'file', size_bytes: 3, readable: true },
      { object: 'workspace_file', path: 'src/b.bin', type: 'file', size_bytes: 2, readable: true },
    ])
    const after = await listing(bench, id, snapshot)
    expect(rowsOf(after)[0]).toMatchObject({ path: 'a.txt', size_bytes: 6 })
  })

  it('FIL-32 FIL-33 FIL-34 AUT-32 AUT-35 a reader may not take a snapshot, and gets no stale listing for it', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    const refused = await bench.call('GET', `/v1/sessions/${id}/files${snapshot}`)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    expect(messageOf(refused)).toContain('sessions:write')
    expect((await listing(bench, id))['state']).toBe('missing')
    expect((await bench.call('GET', `/v1/sessions/${id}/files${snapshot.replace('1', '2')}`)).status).toBe(
      400,
    )
  })

  it('FIL-14 FIL-15 FIL-16 FIL-17 FIL-18 FIL-19 FIL-20 FIL-21 FIL-35 FIL-36 gives text as utf8, anything else as base64', async () => {
    const bench = await open(profile, { limits: { inlineCharacters: 5 } })
    const id = await running(bench)
    const bytes = Buffer.from([0, 255, 1, 2, 3, 4, 5, 6])
    await write(bench, id, inline('a.txt', 'grüße!'), inline('b.bin', bytes))
    await listing(bench, id, snapshot)
    const read = async (path: string) =>
      (await bench.call('GET', `/v1/sessions/${id}/files/content?path=${path}`)).body
    const common = { object: 'workspace_file.content', captured_at: expect.any(Number) }
    expect(await read('a.txt')).toEqual({
      ...common,
      path: 'a.txt',
      content: 'grüße',
      encoding: 'utf8',
      truncated: true,
    })
    expect(await read('b.bin')).toEqual({
      ...common,
      path: 'b.bin',
      content: bytes.toString('base64'),
      encoding: 'base64',
      truncated: false,
    })
    expect((await bench.call('GET', `/v1/sessions/${id}/files/content?path=none`)).status).toBe(404)
    expect((await bench.call('GET', `/v1/sessions/${id}/files/content`)).status).toBe(400)
    expect((await bench.call('GET', `/v1/sessions/${id}/files/content?path=../../etc/passwd`)).status).toBe(
      400,
    )
  })

  it('FIL-11 FIL-12 a listing over its byte ceiling says that it stopped', async () => {
    const bench = await open(profile, { limits: { listingBytes: 10 } })
    const id = await running(bench)
    await write(bench, id, inline('aaaa', ''), inline('bbbb', ''), inline('cccc', ''))
    const { data, truncated } = await listing(bench, id, snapshot)
    expect([rowsOf(data).length, truncated]).toEqual([2, true])
  })

  it('FIL-41 ERR-25 a workspace that is not up answers conflict once and writes nothing', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const early = await write(bench, id, inline('a.txt', 'x'))
    expect([early.status, codeOf(early)]).toEqual([409, 'conflict'])
    expect(rowsOf(await listing(bench, id, snapshot))).toEqual([])
    expect((await write(bench, id, inline('a.txt', 'x'))).status).toBe(200)
  })

  it.each([
    ['a path outside', [inline('../x', '')]],
    ['another type', [{ type: 'url', path: 'x', data: '' }]],
    ['data that is not base64', [{ type: 'inline', path: 'x', data: '%%%' }]],
    ['a file over the ceiling', [inline('x', Buffer.alloc(11))]],
    ['files over the ceiling together', [inline('x', Buffer.alloc(9)), inline('y', Buffer.alloc(9))]],
    ['too many files', [inline('x', ''), inline('y', ''), inline('z', ''), inline('w', '')]],
    ['no files', []],
  ])('FIL-38 FIL-39 refuses %s and writes nothing', async (_what, files) => {
    const bench = await open(profile, { limits: { fileBytes: 10, filesTotalBytes: 15, files: 3 } })
    const id = await running(bench)
    const reply = await write(bench, id, ...files)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(rowsOf(await listing(bench, id, snapshot))).toEqual([])
  })

  it('SES-78 SES-105 SES-106 SES-107 seeded files are written whenever a workspace is built', async () => {
    const bench = await open(profile)
    const id = await bench.session({ environment: { files: [inline('seed.txt', 'x')] } })
    await bench.send(id, 'say hello')
    await bench.settle(id)
    expect(rowsOf(await listing(bench, id, snapshot)).map(({ path }) => path)).toEqual(['seed.txt'])
    await write(bench, id, inline('other.txt', 'y'))
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    await bench.send(id, 'say hello')
    await bench.reach(id, 'idle')
    expect(rowsOf(await listing(bench, id, snapshot)).map(({ path }) => path)).toEqual(['seed.txt'])
    const environment = (await bench.read(id))['environment'] as Fields
    expect(environment['files']).toEqual(profile === 'a' ? [{ path: 'seed.txt' }] : undefined)
  })
})

describe.each(PROFILES)('seeded files, profile %s', (profile) => {
  it('SES-108 SES-109 one that cannot be written leaves an error item, and the session open', async () => {
    const bench = await open(profile)
    const files = [inline('a', 'a file'), inline('a/b', 'below a file'), inline('c', 'fine')]
    const id = await bench.session({ environment: { files } })
    await bench.send(id, 'say hello')
    expect((await bench.settle(id))['status']).toBe('completed')
    const errors = (await bench.items(id)).filter(
      (item) => (item['detail'] as Fields)['event'] === 'agent.error',
    )
    expect(errors.map((item) => item['content'])).toEqual(['a/b could not be written: not a directory'])
    bench.emulator.faults.set({ fail_seeds: 1 })
    const other = await bench.session({ environment: { files: [inline('d', 'x')] } })
    await bench.send(other, 'say hello')
    await bench.settle(other)
    expect(bench.events(other)).toContain('agent.error')
  })
})

describe.each(PROFILES)('model connections, profile %s', (profile) => {
  it('MOD-09 MOD-11 MOD-12 MOD-21 MOD-26 MOD-32 MOD-33 MOD-34 MOD-38 MOD-39 MOD-40 MOD-49 LIM-15 LIM-16 connects a model with a key', async () => {
    const bench = await open(profile, { limits: { modelConnections: 2 } })
    const connect = (body: unknown) => bench.call('POST', '/v1/model-credentials', body)
    const made = await connect({ key: 'nw-secret-1234' })
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
    expect((await connect({ key: 'nw-secret-1234' })).body['id']).toBe(made.body['id'])
    const full = await connect({ key: 'demo-2' })
    expect(messageOf(full)).toMatch(/(DELETE|POST) \/v1\/model-credentials/)
    expect(messageOf(await connect({ key: 'sk-ambiguous' }))).toContain('/v1/model-connectors')
    expect((await connect({ key: 'sk-x', provider: 'nobody' })).status).toBe(400)
    expect((await connect({ key: 'nw-x', is_default: 'true' })).status).toBe(400)
    expect((await connect({ provider: 'demo' })).status).toBe(400)
    const roomy = await open(profile)
    const rejected = await roomy.call('POST', '/v1/model-credentials', {
      key: 'sk-rejected',
      provider: 'contoso',
    })
    expect(messageOf(rejected)).toContain('"Incorrect API key provided."')
    expect(rowsOf((await roomy.call('GET', '/v1/model-credentials')).body)).toHaveLength(1)
  })

  it('MOD-28 MOD-29 MOD-30 MOD-44 MOD-45 MOD-46 MOD-47 MOD-48 SES-96 a disconnect moves sessions, or leaves them without a model', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const { body: made } = await bench.call('POST', '/v1/model-credentials', {
      key: 'nw-1',
      is_default: true,
    })
    const [demo] = rowsOf((await bench.call('GET', '/v1/model-credentials')).body).filter(
      ({ label }) => label === 'Demo',
    )
    expect((await bench.read(id))['agent']).toMatchObject({
      model: 'demo',
      model_credential_id: demo?.['id'],
    })
    const { method, path } = bench.details.disconnect
    const disconnect = (which: unknown) => bench.call(method, path.replace('{credential_id}', String(which)))
    expect((await disconnect(demo?.['id'])).body).toEqual({ sessions_moved: 1, moved_to: made['id'] })
    expect((await bench.read(id))['agent']).toMatchObject({ model: 'northwind-large' })
    expect((await disconnect(made['id'])).body).toEqual({ sessions_moved: 1, moved_to: null })
    expect((await disconnect(made['id'])).status).toBe(404)
    await bench.send(id, 'say hello')
    await bench.reach(id, 'failed')
    expect(String((await bench.items(id)).at(-1)?.['content'])).toContain('no model')
    expect((await bench.call('POST', '/v1/sessions', {})).status).toBe(400)
    await until(() => (bench.emulator.ledger().turns.length === 0 ? true : undefined))
  })
})
