import { describe, expect, it } from 'vitest'
import type { Scope } from '../../src/emulator/index.ts'
import { descriptionOf } from '../emulator/described.ts'
import { listen } from '../emulator/listener.ts'
import { codeOf, messageOf, open, PROFILES, rowsOf, type Bench } from '../emulator/support.ts'
import { operationsOf, scopeOf, withIds } from './description.ts'

const EVERY_SCOPE: Scope[] = [
  'sessions:read',
  'sessions:write',
  'tools:respond',
  'artifacts:read',
  'credentials:write',
  'cli',
]
const DAY = 86_400_000

/** From here on the bench speaks with a token that was minted over the emulator's own route. */
async function as(bench: Bench, scopes: Scope[], days = 30): Promise<string> {
  const reply = await bench.call('POST', '/_emulator/tokens', { scopes, days })
  expect(reply.status).toBe(201)
  bench.token = String(reply.body['token'])
  return String(reply.body['id'])
}

/** A session whose agent waits for an answer, made with every scope. */
async function waiting(bench: Bench): Promise<{ id: string; callId: unknown; turnId: string }> {
  const id = await bench.session()
  await bench.send(id, 'write outputs/a.txt hi')
  await bench.settle(id)
  await bench.send(id, 'call f {}')
  const [action] = await bench.actions(id)
  return { id, callId: action?.['call_id'], turnId: String(action?.['turn_id']) }
}

describe.each(PROFILES)('authentication, profile %s', (profile) => {
  it('AUT-01 every route but the description takes a bearer token', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    for (const authorization of [
      '',
      'Basic c3ZjOnBhdA==',
      bench.emulator.token,
      'Bearer',
      'Bearer svc_pat_x',
    ]) {
      for (const { method, path } of operationsOf(document)) {
        const { status } = await bench.call(method, withIds(path), undefined, { authorization })
        expect([method, path, status]).toEqual([method, path, path === '/v1/openapi.json' ? 200 : 401])
      }
    }
    const lower = await bench.call('GET', '/v1/health', undefined, { authorization: `bearer ${bench.token}` })
    expect(lower.status).toBe(200)
  })

  it('AUT-02 AUT-03 AUT-04 a token begins with svc_pat_ and keeps the scopes that it was minted with', async () => {
    const bench = await open(profile)
    expect(bench.token).toMatch(/^svc_pat_/)
    await as(bench, ['sessions:read', 'tools:respond'])
    expect(bench.token).toMatch(/^svc_pat_\w{20,}$/)
    await bench.emulator.advance(DAY)
    expect((await bench.call('GET', '/v1/health')).body['scopes']).toEqual(['sessions:read', 'tools:respond'])
  })

  it('AUT-05 AUT-06 AUT-07 AUT-08 AUT-09 AUT-10 there are six scopes, and no other can be minted', async () => {
    const bench = await open(profile)
    for (const scope of EVERY_SCOPE) {
      await as(bench, [scope])
      expect((await bench.call('GET', '/v1/health')).body['scopes']).toEqual([scope])
    }
    for (const scopes of [['sessions:delete'], [], ['cli', 'cli'], 'cli'])
      expect((await bench.call('POST', '/_emulator/tokens', { scopes })).status).toBe(400)
  })

  it('AUT-11 AUT-12 AUT-13 AUT-14 a token minted as the Console does by default is cli, which health alone answers', async () => {
    const bench = await open(profile)
    const minted = await bench.call('POST', '/_emulator/tokens')
    bench.token = String(minted.body['token'])
    const { document } = await descriptionOf(profile)
    for (const { method, path } of operationsOf(document)) {
      if (path === '/v1/openapi.json' || path === '/v1/health') continue
      const reply = await bench.call(method, withIds(path))
      expect([method, path, reply.status, codeOf(reply)]).toEqual([method, path, 403, 'permission_denied'])
      expect(messageOf(reply)).toContain('cli')
    }
    expect((await bench.call('GET', '/v1/health')).body).toMatchObject({
      scopes: ['cli'],
      usable: false,
      missing_scopes: ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'],
    })
  })

  it('AUT-15 AUT-16 four scopes drive sessions end to end and cannot connect a provider', async () => {
    const bench = await open(profile)
    await as(bench, ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'])
    const id = await bench.session()
    const stream = await listen(bench)
    await bench.send(id, 'call f {}\nwrite outputs/a.txt {{last}}')
    const [action] = await bench.actions(id)
    await bench.answer(id, { call_id: action?.['call_id'], output: 'done' })
    await bench.settle(id)
    await stream.hear('turn.ended')
    const [artifact] = rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    const place = `/v1/sessions/${id}/artifacts/${String(artifact?.['id'])}/content`
    expect((await bench.call('GET', place)).text).toBe('done')
    expect((await bench.call('DELETE', `/v1/sessions/${id}`)).status).toBeLessThan(300)
    const refused = await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
  })

  it('AUT-17 AUT-18 AUT-19 AUT-20 AUT-36 a token for answering answers, and cannot send, cancel or delete', async () => {
    const bench = await open(profile)
    const { id, callId, turnId } = await waiting(bench)
    await as(bench, ['sessions:read', 'tools:respond'])
    expect((await bench.send(id, 'x')).status).toBe(403)
    expect((await bench.call('POST', bench.path('cancel', id, turnId))).status).toBe(403)
    expect((await bench.call('DELETE', `/v1/sessions/${id}`)).status).toBe(403)
    expect((await bench.answer(id, { call_id: callId, output: '' })).status).toBe(200)
    await as(bench, ['sessions:read', 'sessions:write', 'artifacts:read'])
    const unable = await bench.answer(id, { call_id: callId, output: '' })
    expect([unable.status, codeOf(unable)]).toEqual([403, 'permission_denied'])
    expect(messageOf(unable)).toContain('tools:respond')
  })

  it('AUT-21 AUT-22 AUT-23 AUT-37 a token for watching reads everything and changes nothing, artifacts included', async () => {
    const bench = await open(profile)
    const { id, callId, turnId } = await waiting(bench)
    const [artifact] = rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    const artifactId = String(artifact?.['id'])
    await as(bench, ['sessions:read', 'artifacts:read'])
    expect((await listen(bench)).response.statusCode).toBe(200)
    const archive = `/v1/sessions/${id}/artifacts/archive`
    const content = `/v1/sessions/${id}/artifacts/${artifactId}/content`
    for (const path of [`/v1/sessions/${id}`, bench.path('artifacts', id), content, archive])
      expect([path, (await bench.call('GET', path)).status]).toEqual([path, 200])
    const before = bench.emulator.ledger()
    const changes: [string, string, unknown?][] = [
      ['DELETE', bench.path('artifact', id, artifactId)],
      ['DELETE', `/v1/sessions/${id}`],
      ['PATCH', `/v1/sessions/${id}`, { title: 'x' }],
      ['POST', bench.path('message', id), bench.message('x')],
      ['POST', bench.path('cancel', id, turnId)],
      ['POST', bench.path('answer', id), { call_id: callId, output: '' }],
      ['POST', `/v1/sessions/${id}/files/refresh`],
    ]
    for (const [method, path, body] of changes)
      expect([path, (await bench.call(method, path, body)).status]).toEqual([path, 403])
    expect(bench.emulator.ledger()).toEqual({ ...before, now: expect.any(Number) })
    await as(bench, ['sessions:read'])
    for (const path of [bench.path('artifacts', id), content, archive])
      expect([path, (await bench.call('GET', path)).status]).toEqual([path, 403])
  })

  it('AUT-24 credentials:write beside the right to create is refused, or allowed, as the profile has it', async () => {
    const bench = await open(profile)
    const scopes: Scope[] = ['sessions:write', 'credentials:write']
    const reply = await bench.call('POST', '/_emulator/tokens', { scopes })
    expect([reply.status, /credentials:write is never part/.test(reply.text)]).toEqual(
      profile === 'a' ? [400, true] : [201, false],
    )
    const alone = await bench.call('POST', '/_emulator/tokens', { scopes: ['credentials:write'] })
    expect(alone.status).toBe(201)
  })

  it('AUT-25 AUT-26 AUT-27 a token that is missing, unknown or revoked is rejected on the very next request', async () => {
    const bench = await open(profile)
    const id = await as(bench, ['sessions:read'])
    const token = bench.token
    expect((await bench.call('GET', '/v1/sessions')).status).toBe(200)
    expect((await bench.call('DELETE', `/_emulator/tokens/${id}`)).body).toEqual({ id, revoked: true })
    for (const given of [token, 'svc_pat_unknown', '']) {
      bench.token = given
      for (const path of ['/v1/sessions', '/v1/health', '/v1/events']) {
        const reply = await bench.call('GET', path)
        expect(reply.status).toBe(401)
        expect(reply.headers['www-authenticate']).toBe('Bearer realm=service')
      }
    }
    expect((await bench.call('DELETE', '/_emulator/tokens/tok_x')).status).toBe(404)
  })

  it('AUT-28 AUT-29 a 401 stays one: nothing refreshes a token, and trying again never helps', async () => {
    const bench = await open(profile)
    const id = await as(bench, ['sessions:read'], 7)
    bench.emulator.revokeToken(id)
    for (const wait of [0, 1000, DAY]) {
      await bench.emulator.advance(wait)
      const reply = await bench.call('GET', '/v1/sessions')
      expect([reply.status, reply.headers['retry-after']]).toEqual([401, undefined])
    }
    const { document } = await descriptionOf(profile)
    expect(
      operationsOf(document).filter(({ path }) => /token|refresh$/.test(path.replace('files/refresh', ''))),
    ).toEqual([])
  })

  it('AUT-30 health is a check that any scope pays for with one read and no body', async () => {
    const bench = await open(profile, { limits: { readsPerSecond: 0.001 } })
    const left = profile === 'a' ? 'x-ratelimit-remaining' : 'service-budget-left'
    for (const scope of EVERY_SCOPE) {
      await as(bench, [scope])
      const [one, two] = [await bench.call('GET', '/v1/health'), await bench.call('GET', '/v1/health')]
      expect([one.status, Number(one.headers[left]) - Number(two.headers[left])]).toEqual([200, 1])
    }
  })

  it('AUT-31 every operation holds to the scope that the description names, which differs between the profiles', async () => {
    const bench = await open(profile, { limits: { readsBurst: 10_000, streamsPerToken: 100 } })
    const { document } = await descriptionOf(profile)
    let tried = 0
    for (const { method, path, operation } of operationsOf(document)) {
      const required = scopeOf(operation)
      if (required === undefined) continue
      const others = EVERY_SCOPE.filter((scope) => scope !== required && scope !== 'credentials:write')
      bench.token = bench.emulator.mintToken(others).token
      const refused = await bench.call(method, withIds(path))
      expect([path, method, refused.status, codeOf(refused)]).toEqual([
        path,
        method,
        403,
        'permission_denied',
      ])
      expect(messageOf(refused)).toContain(required)
      bench.token = bench.emulator.mintToken([required as Scope]).token
      expect([path, (await bench.call(method, `${withIds(path)}?stop=1`)).status]).toEqual([path, 400])
      tried += 1
    }
    expect(tried).toBeGreaterThan(30)
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    for (const path of ['/v1/model-credentials', '/v1/model-connectors'])
      expect((await bench.call('GET', path)).status).toBe(profile === 'a' ? 200 : 403)
  })

  it('AUT-32 AUT-33 AUT-34 AUT-35 reading files, turns and items needs sessions:read, taking a snapshot first sessions:write', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'write a.txt hi')
    await bench.settle(id)
    const places = ['files', 'turns', 'items'].map((part) => `/v1/sessions/${id}/${part}`)
    await as(bench, ['sessions:write', 'artifacts:read', 'tools:respond'])
    for (const path of places) expect([path, (await bench.call('GET', path)).status]).toEqual([path, 403])
    await as(bench, ['sessions:read'])
    for (const path of places) expect([path, (await bench.call('GET', path)).status]).toEqual([path, 200])
    const fresh = `/v1/sessions/${id}/files?${bench.details.files.snapshotQuery}=1`
    const refused = await bench.call('GET', fresh)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    expect(messageOf(refused)).toContain('sessions:write')
    await as(bench, ['sessions:read', 'sessions:write'])
    const listing = await bench.call('GET', fresh)
    expect(rowsOf(listing.body)).toMatchObject([{ path: 'a.txt' }])
  })

  it('AUT-38 connecting a model needs credentials:write', async () => {
    const bench = await open(profile)
    await as(bench, ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'])
    const refused = await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })
    expect([refused.status, messageOf(refused).includes('credentials:write')]).toEqual([403, true])
    await as(bench, ['credentials:write'])
    expect((await bench.call('POST', '/v1/model-credentials', { key: 'nw-1' })).status).toBe(201)
  })
})
