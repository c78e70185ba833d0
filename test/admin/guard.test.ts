import { networkInterfaces } from 'node:os'
import { Agent } from 'undici'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { exchangeRaw } from './raw.ts'
import { send, startAdmin, type Reply, type Running } from './running.ts'

async function withAdmin(
  options: Parameters<typeof startAdmin>[0],
  run: (running: Running) => Promise<void>,
): Promise<void> {
  const running = await startAdmin(options)
  try {
    await run(running)
  } finally {
    await running.stop()
  }
}

const OPEN = ['/livez', '/readyz', '/startupz', '/metrics']
const GUARDED = ['/api/status', '/api/events', '/openapi.json', '/nowhere']

describe('with a token', () => {
  it('requires it everywhere except for probes and metrics', () =>
    withAdmin({ token: () => 'correct horse' }, async ({ get, post }) => {
      for (const path of OPEN) expect((await get(path)).status).toBe(200)
      for (const path of GUARDED) {
        const reply = await get(path)
        expect(reply.status).toBe(401)
        expect(reply.headers['www-authenticate']).toBe('Bearer realm="session-sidecar"')
        // Only an admitted client keeps a connection.
        expect(reply.headers['connection']).toBe('close')
        expect(reply.headers['content-type']).toBe('application/problem+json')
      }
      expect((await post('/api/handlers/app/pause')).status).toBe(401)
    }))

  it.each([
    'Bearer wrong',
    'Bearer ',
    'Basic c2VjcmV0',
    'secret',
    'Bearer secret2',
    'Bearer secret secret',
    '',
  ])('refuses "%s"', (authorization) =>
    withAdmin({ token: () => 'secret' }, async ({ get }) => {
      expect((await get('/api/tools', { authorization })).status).toBe(401)
    }),
  )

  it('logs wrong tokens, one line for many, and no request without a token', () =>
    withAdmin({ token: () => 'secret' }, async ({ get, log }) => {
      for (let time = 0; time < 5; time++) await get('/api/tools')
      expect(log.lines).toEqual([])
      for (let time = 0; time < 5; time++) await get('/api/tools', { authorization: `Bearer ${time}` })
      expect(log.lines.map(({ level, details }) => [level, details])).toEqual([['warn', { times: 1 }]])
    }))

  it('accepts it under any Host, and uses a changed token', () => {
    let token = 'one'
    return withAdmin({ token: () => token }, async ({ get }) => {
      const ask = (given: string) =>
        get('/api/tools', { authorization: `bearer ${given}`, host: 'admin.example.com' })
      expect((await ask('one')).status).toBe(200)
      token = 'two'
      expect((await ask('one')).status).toBe(401)
      expect((await ask('two')).status).toBe(200)
    })
  })
})

describe('guessing the token', () => {
  const SENT = { 'x-sidecar-console': '1' }
  const login = (token: string) => ({ method: 'POST' as const, headers: { ...SENT, 'content-type': 'application/json' }, body: JSON.stringify({ token }) }) // prettier-ignore

  const guessAt = (base: string, path: string, token: string): Promise<Reply> =>
    path === '/api/tools'
      ? send(base + path, { method: 'GET', headers: { authorization: `Bearer ${token}` } })
      : send(base + path, login(token))
  const isCompared = ({ text }: Reply): boolean => !text.includes('not compared')

  it.each(['/console/login', '/api/tools'])(
    'with wrong tokens at %s gets 429, and the right one from the same address is accepted',
    (path) =>
      withAdmin({ token: () => 'secret' }, async ({ base }) => {
        const replies: Reply[] = []
        for (let tried = 0; tried < 40; tried++) {
          replies.push(await guessAt(base, path, `guess-${tried}`))
          expect((await guessAt(base, path, 'secret')).status).toBe(200)
        }
        // Ten, then one a second.
        const plain = replies.filter(({ status }) => status === 401)
        expect(plain.length).toBeGreaterThanOrEqual(10)
        expect(plain.length).toBeLessThan(30)
        const limited = replies.filter(({ status }) => status === 429)
        expect(limited).toHaveLength(40 - plain.length)
        expect(limited.every(({ headers }) => headers['retry-after'] === '1')).toBe(true)
      }),
  )

  it('in a flood at the login: 50 tokens are compared, then 50 a second, and other addresses can log in', () =>
    withAdmin({ token: () => 'secret' }, async ({ base }) => {
      const path = '/console/login'
      const begun = performance.now()
      // One by one they took 14 s on a busy machine: that is no flood.
      const guesses = Array.from({ length: 400 }, (_, tried) => guessAt(base, path, `guess-${tried}`))
      const replies = await Promise.all(guesses)
      const seconds = (performance.now() - begun) / 1000
      const compared = replies.filter(isCompared).length
      expect(compared).toBeGreaterThanOrEqual(50)
      // One more: the first of a peer counts with those that were never wrong.
      expect(compared).toBeLessThanOrEqual(51 + 50 * seconds)
      expect(compared).toBeLessThan(400)
      const elsewhere = new Agent({ localAddress: '127.0.0.2' })
      expect((await send(base + path, { ...login('secret'), dispatcher: elsewhere })).status).toBe(200)
      expect((await guessAt(base, '/api/tools', 'secret')).status).toBe(200)
      await until('a right one', async () => (await guessAt(base, path, 'secret')).status === 200)
    }))

  it('with the same wrong token again, as an old program does, costs nothing', () =>
    withAdmin({ token: () => 'secret' }, async ({ base }) => {
      for (let tried = 0; tried < 50; tried++)
        expect((await send(`${base}/console/login`, login('old'))).status).toBe(401)
      expect((await send(`${base}/console/login`, login('secret'))).status).toBe(200)
    }))
})

describe('without a token', () => {
  it('has no API unless it listens on loopback, and says why', () =>
    withAdmin({ listen: { host: '0.0.0.0', port: 0 } }, async ({ get, post }) => {
      for (const path of OPEN) expect((await get(path)).status).toBe(200)
      for (const reply of [
        await get('/api/status'),
        await get('/openapi.json'),
        await post('/api/deliveries/retry'),
      ]) {
        expect(reply.status).toBe(404)
        expect(reply.json['detail']).toMatch(/admin\.token/)
      }
    }))

  it.each(['localhost', 'LOCALHOST:8481', '127.0.0.1', '127.8.9.1:1', '[::1]', '[::1]:8481'])(
    'on loopback answers requests to %s',
    (host) => withAdmin({}, async ({ get }) => expect((await get('/api/tools', { host })).status).toBe(200)),
  )

  it.each([
    'evil.example',
    'localhost.evil.example:80',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[::2]',
    'a b',
  ])('on loopback refuses requests to %s, whose name was rebound', (host) =>
    withAdmin({}, async ({ get }) => {
      for (const path of ['/api/tools', '/metrics']) expect((await get(path, { host })).status).toBe(403)
    }),
  )

  it('on loopback refuses what a page of another origin makes a browser send', () =>
    withAdmin({}, async ({ base, post, get, asked }) => {
      const refused: Reply[] = [
        await post('/api/handlers/app/pause', undefined, { origin: 'https://evil.example' }),
        await post('/api/handlers/app/pause', undefined, { origin: 'null' }),
        await get('/api/events', { 'sec-fetch-site': 'cross-site' }),
        await get('/api/events', { 'sec-fetch-site': 'same-site' }),
      ]
      expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
      expect(asked).toEqual([])
      expect((await post('/api/handlers/app/pause', undefined, { origin: base })).status).toBe(202)
      expect((await get('/api/events', { 'sec-fetch-site': 'none' })).status).toBe(200)
    }))

  it.each([
    { 'x-forwarded-for': '203.0.113.9' },
    { 'x-forwarded-proto': 'https' },
    { forwarded: 'for=_x' },
    { via: '1.1 proxy' },
    { 'x-real-ip': '203.0.113.9' },
    { 'x-client-ip': '203.0.113.9' },
    { 'cf-connecting-ip': '203.0.113.9' },
    { 'cf-ray': '7d2a' },
    { 'true-client-ip': '203.0.113.9' },
    { 'fly-client-ip': '203.0.113.9' },
    { 'x-envoy-external-address': '203.0.113.9' },
    { 'x-original-host': 'admin.example.com' },
    { 'x-amzn-trace-id': 'Root=1-67891233-abcdef012345678912345678' },
  ])('on loopback gives a proxy (%o) only what needs no token', (headers) =>
    withAdmin({}, async ({ get, post, asked }) => {
      expect((await get('/api/events', headers)).status).toBe(403)
      expect((await get('/', headers)).status).toBe(403)
      expect((await post('/api/handlers/app/pause', undefined, headers)).json['detail']).toMatch(
        /admin\.token/,
      )
      expect(asked).toEqual([])
      expect((await get('/metrics', headers)).status).toBe(200)
    }),
  )

  it('refuses a request without Host, which HTTP/1.0 permits', () =>
    withAdmin({}, async ({ base }) => {
      const reply = await exchangeRaw(Number(new URL(base).port), 'GET /api/tools HTTP/1.0\r\n\r\n')
      expect(reply).toMatch(/^HTTP\/1.1 403 /)
    }))
})

describe('every answer', () => {
  it('carries headers that keep browsers out, and none that let origins in', () =>
    withAdmin({}, async ({ get }) => {
      for (const reply of [await get('/api/tools'), await get('/nowhere'), await get('/metrics')]) {
        expect(reply.headers).toMatchObject({
          'cache-control': 'no-store',
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
          'x-content-type-options': 'nosniff',
        })
        expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }))

  it('to a method that a path does not take is 405 with those it takes', () =>
    withAdmin({}, async ({ base, get }) => {
      const put = await send(`${base}/api/sessions/x`, { method: 'PUT' })
      expect([put.status, put.headers['allow']]).toEqual([405, 'GET, HEAD'])
      const read = await get('/api/handlers/app/pause')
      expect([read.status, read.headers['allow']]).toEqual([405, 'POST'])
      expect((await send(`${base}/api/tools`, { method: 'HEAD' })).status).toBe(200)
      const stream = await send(`${base}/v1/events`, { method: 'HEAD' })
      expect([stream.status, stream.headers['allow']]).toEqual([405, 'GET'])
      const many = await get('/api/deliveries/retry')
      expect([many.status, many.headers['allow']]).toEqual([405, 'POST'])
      const page = await send(`${base}/`, { method: 'PUT' })
      expect([page.status, page.headers['allow']]).toEqual([405, 'GET, HEAD'])
      const login = await send(`${base}/console/login`, { method: 'DELETE' })
      expect([login.status, login.headers['allow']]).toEqual([405, 'GET, HEAD, POST'])
    }))

  it('to bytes that are no request is an error, and the listener continues', () =>
    withAdmin({}, async ({ base, get }) => {
      const port = Number(new URL(base).port)
      expect(await exchangeRaw(port, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /)
      expect(
        await exchangeRaw(port, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`),
      ).toMatch(/^HTTP\/1.1 431 /)
      expect((await get('/api/sessions/%ff')).status).toBe(400)
      expect((await get(`/api/sessions/${'x'.repeat(2000)}`)).status).toBe(400)
      expect((await get('/livez')).status).toBe(200)
    }))
})

it('is reachable over any address of the machine when it listens on all', () =>
  withAdmin({ listen: { host: '0.0.0.0', port: 0 }, token: () => 't' }, async ({ base }) => {
    const outside = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)
    const address = outside?.address ?? '127.0.0.1'
    const url = `http://${address}:${new URL(base).port}/api/tools`
    expect((await send(url, { method: 'GET', headers: { authorization: 'Bearer t' } })).status).toBe(200)
  }))
