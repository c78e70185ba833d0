import { Client, request } from 'undici'
import { describe, expect, it } from 'vitest'
import { open, PROFILES } from './support.ts'

const DAY = 86_400_000

describe.each(PROFILES)('routes that the emulator adds, profile %s', (profile) => {
  it('mint tokens with scopes and days, which die in time or are revoked', async () => {
    const bench = await open(profile)
    const mint = (body: unknown) => bench.call('POST', '/_emulator/tokens', body)
    const minted = await mint({ scopes: ['sessions:read'], days: 30 })
    expect([minted.status, minted.body]).toEqual([
      201,
      { id: expect.stringMatching(/^tok_/), token: expect.stringMatching(/^svc_pat_/) },
    ])
    bench.token = String(minted.body['token'])
    await bench.emulator.advance(30 * DAY - 60_000)
    expect((await bench.call('GET', '/v1/health')).status).toBe(200)
    await bench.emulator.advance(60_000)
    expect((await bench.call('GET', '/v1/health')).status).toBe(401)
    const { id, token } = bench.emulator.mintToken(['tools:respond'])
    bench.token = token
    expect((await bench.call('GET', '/v1/health')).body['scopes']).toEqual(['tools:respond'])
    expect([bench.emulator.revokeToken(id), bench.emulator.revokeToken('tok_x')]).toEqual([true, false])
    expect((await bench.call('GET', '/v1/health')).status).toBe(401)
  })

  it('answer programs on this machine and in containers beside it, and no page of another origin or name', async () => {
    const { emulator } = await open(profile)
    const { port } = new URL(emulator.baseUrl)
    const ask = (headers: Record<string, string>): Promise<number> =>
      request(`${emulator.baseUrl}/_emulator/ledger`, { headers }).then(async ({ statusCode, body }) => {
        await body.dump()
        return statusCode
      })
    for (const host of [
      'localhost',
      `127.0.0.1:${port}`,
      '[::1]:4010',
      '10.1.2.3:4010',
      'emulator:4010',
      'host.docker.internal',
    ])
      expect([host, await ask({ host })]).toEqual([host, 200])
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      'a b',
    ])
      expect([host, await ask({ host })]).toEqual([host, 403])
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ])
      expect([headers, await ask(headers)]).toEqual([headers, 403])
    expect(await ask({ origin: emulator.baseUrl })).toBe(200)
    // The routes of the service are for its own tokens, by whatever name.
    const health = await request(`${emulator.baseUrl}/v1/health`, { headers: { host: 'agents.example.com' } })
    expect(health.statusCode).toBe(401)
    await health.body.dump()
  })

  it.each([
    '/_emulator/tokens',
    '/%5Femulator/tokens',
    '/%5femul%61tor/tokens',
    'http://evil.example/_emulator/tokens',
  ])('refuse a page however it writes their path: %s', async (path) => {
    const { emulator } = await open(profile)
    const client = new Client(emulator.baseUrl)
    const headers = { host: 'evil.example', origin: 'https://evil.example' }
    const { statusCode, body } = await client.request({ method: 'POST', path, headers })
    await body.dump()
    await client.close()
    expect(statusCode).toBe(403)
  })

  it('move the clock, which the Date of every answer follows', async () => {
    const bench = await open(profile)
    const { body } = await bench.call('POST', '/_emulator/clock', { advance: '2h' })
    expect(Math.abs(Number(body['now']) - Date.now() - 7_200_000)).toBeLessThan(5000)
    const { headers } = await bench.call('GET', '/v1/health')
    expect(Math.abs(Date.parse(String(headers['date'])) - Date.now() - 7_200_000)).toBeLessThan(5000)
    for (const advance of ['2 hours', '', '-5s', '9999d', 5])
      expect((await bench.call('POST', '/_emulator/clock', { advance })).status).toBe(400)
  })

  it('serve the ledger whole, or from a seq on', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    await bench.settle(id)
    const { body } = await bench.call('GET', '/_emulator/ledger')
    const live = bench.emulator.ledger()
    expect(body).toEqual({ ...live, now: expect.any(Number) })
    const rest = await bench.call('GET', '/_emulator/ledger?after_seq=3')
    expect((rest.body['events'] as unknown[]).length).toBe(live.events.length - 3)
  })

  it('need no token, and refuse what they do not know as the service does', async () => {
    const bench = await open(profile)
    bench.token = 'none'
    expect((await bench.call('GET', '/_emulator/faults')).status).toBe(200)
    for (const [method, path, body] of [
      ['POST', '/_emulator/tokens', { scope: ['cli'] }],
      ['POST', '/_emulator/clock', '{'],
      ['PUT', '/_emulator/faults', []],
      ['GET', '/_emulator/ledger?from=1', undefined],
      ['POST', '/_emulator/actions/none', { approved: true, answer: 'both' }],
    ] as const) {
      const reply = await bench.call(method, path, body)
      expect([path, reply.status]).toEqual([path, 400])
    }
    expect((await bench.call('POST', '/_emulator/actions/none', { approved: true })).status).toBe(404)
    expect((await bench.call('GET', '/_emulator/nothing')).status).toBe(404)
  })
})
