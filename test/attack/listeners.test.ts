import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signServiceWebhook } from '../../src/std/signature.ts'
import { exchangeRaw } from '../admin/raw.ts'
import { readExposition } from '../admin/exposition.ts'
import { SECRET } from '../support/app.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

let rig: Rig
let admin: number
let hooks: number

beforeAll(async () => {
  rig = await Rig.open({ channels: ['webhook', 'poll'], start: false })
  const { listen = '', public_url, ...webhooks } = rig.config.webhooks ?? {}
  if (public_url === undefined) throw new Error('the rig takes no webhooks')
  rig.config = { ...rig.config, webhooks: { ...webhooks, listen, secrets: [SECRET] } }
  await rig.start()
  hooks = Number(listen.split(':')[1])
  admin = Number(new URL(rig.program?.admin ?? '').port)
})
afterAll(async () => {
  await agent.close()
  await rig[Symbol.asyncDispose]()
})

/** Fewer connections than the listener takes. */
const agent = new Agent({ connections: 100 })

const BODY = '{"event":"session.idle","data":{"session_id":"s"}}'

async function deliver(
  body: string | Buffer,
  timestamp: string,
  more: Record<string, string> = {},
): Promise<number> {
  const answer = await request(`http://127.0.0.1:${hooks}/webhooks`, {
    method: 'POST',
    headers: {
      'x-service-timestamp': timestamp,
      'x-service-signature': signServiceWebhook(SECRET, timestamp, body),
      ...more,
    },
    body,
    dispatcher: agent,
  })
  await answer.body.dump()
  return answer.statusCode
}

async function received(outcome: string): Promise<number> {
  const { body } = await request(`http://127.0.0.1:${admin}/metrics`)
  const families = readExposition(await body.text())
  const samples = families.get('session_sidecar_webhooks_received_total')?.samples ?? []
  return samples.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0
}

/** Both doors still do their work. */
async function isWell(): Promise<void> {
  expect(await deliver(BODY, String(Date.now()))).toBe(200)
  expect((await rig.raw('GET', '/livez')).status).toBe(200)
}

const doors = (): (readonly [name: string, port: number, path: string])[] => [
  ['webhooks', hooks, '/webhooks'],
  ['admin', admin, '/api/replay'],
]
const post = (path: string, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}`

describe('the listeners of a running sidecar', () => {
  test(
    'slow senders of headers and of bodies are cut, and block no other client',
    { timeout: 40_000 },
    async () => {
      const beginnings = doors().flatMap(([, port, path]) => [
        [port, post(path, 'x-slow: ')] as const,
        [port, post(path, 'content-length: 1000\r\n\r\n{')] as const,
      ])
      const begun = performance.now()
      const slow = beginnings.flatMap(([port, beginning]) =>
        // Half of them never close their own side.
        Array.from({ length: 24 }, (_, index) => {
          const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: index % 2 === 0 })
          socket.on('error', () => undefined).resume()
          socket.write(beginning)
          const drip = setInterval(() => socket.write('x'), 500)
          return new Promise<void>((resolve) => void socket.once('close', () => resolve())).finally(() =>
            clearInterval(drip),
          )
        }),
      )
      await isWell()
      await Promise.all(slow)
      // Fifteen seconds of the admin listener, and two until the check.
      expect(performance.now() - begun).toBeLessThan(25_000)
      await isWell()
    },
  )

  test('headers that are many, long or doubled are refused', async () => {
    const bombs = [
      `x: ${'x'.repeat(200_000)}\r\n`,
      Array.from({ length: 10_000 }, (_, index) => `x-${index}: 1\r\n`).join(''),
      'content-length: 2\r\ncontent-length: 3\r\n',
      'content-length: 2\r\ntransfer-encoding: chunked\r\n',
      `cookie: ${'a=b; '.repeat(20_000)}\r\n`,
    ]
    for (const [, port, path] of doors())
      for (const bomb of bombs)
        expect(await exchangeRaw(port, `${post(path, bomb)}connection: close\r\n\r\n`)).toMatch(
          /^(HTTP\/1.1 4(00|31) |$)/,
        )
    await isWell()
  })

  test('JSON of any depth gets an answer, and ends no process', async () => {
    const deep = '[{"a":'.repeat(50_000)
    expect(await deliver(deep, String(Date.now()))).toBe(200)
    expect(await deliver(`${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}`, String(Date.now()))).toBe(200)
    for (const body of [deep, `${'['.repeat(200_000)}${']'.repeat(200_000)}`, '{"__proto__":{"x":1}}']) {
      const answer = await request(`http://127.0.0.1:${admin}/api/replay`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      expect([answer.statusCode, await answer.body.text()]).toEqual([
        400,
        expect.not.stringContaining('    at '),
      ])
    }
    await isWell()
  })

  test('a compressed body is refused as it is, not inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024))
    const before = process.memoryUsage().rss
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip'])
      expect(await deliver(bomb, String(Date.now()), { 'content-encoding': encoding })).toBe(415)
    const answer = await request(`http://127.0.0.1:${admin}/api/replay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: bomb,
    })
    expect([answer.statusCode, await answer.body.text()]).toEqual([400, expect.any(String)])
    expect(process.memoryUsage().rss - before).toBeLessThan(128 * 1024 * 1024)
    await isWell()
  })

  test('bodies over the limit are refused before they have arrived', async () => {
    for (const [, port, path] of doors()) {
      const announced = await exchangeRaw(port, post(path, 'content-length: 99999999999\r\n\r\n'))
      expect(announced).toMatch(/^HTTP\/1.1 413 /)
      const chunk = `400000\r\n${'x'.repeat(0x400000)}\r\n`
      expect(await exchangeRaw(port, post(path, `transfer-encoding: chunked\r\n\r\n${chunk}`))).toMatch(
        /^(HTTP\/1.1 4(01|13) |$)/,
      )
    }
    await isWell()
  })

  test('a hundred forged deliveries in one packet get one answer, and their connection is closed', async () => {
    const forged = post('/webhooks', 'content-length: 2\r\n\r\n{}')
    const answers = await exchangeRaw(hooks, forged.repeat(100))
    expect(answers.match(/HTTP\/1.1 401 /g)).toHaveLength(1)
    await isWell()
  })

  test('forgers who stay after their answer keep no genuine delivery out', async () => {
    const sockets: Socket[] = []
    try {
      for (let count = 0; count < 300; count++) {
        const socket = connect(hooks, '127.0.0.1')
        sockets.push(socket)
        socket.on('error', () => undefined)
        const ended = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
        socket.write(post('/webhooks', 'content-length: 2\r\n\r\n{}'))
        socket.resume()
        await ended
      }
      expect(sockets).toHaveLength(300)
      await isWell()
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  })

  test('connections above the limit are refused, and slots become free again', async () => {
    const sockets: Socket[] = []
    try {
      for (let index = 0; index < 400; index++) {
        const socket = connect(hooks, '127.0.0.1')
        sockets.push(socket.on('error', () => undefined).resume())
      }
      await until('refused connections', () => sockets.filter(({ closed }) => closed).length > 100)
      expect((await rig.raw('GET', '/livez')).status).toBe(200)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
    await until('room', () =>
      deliver(BODY, String(Date.now())).then(
        (status) => status === 200,
        () => false,
      ),
    )
  })

  // [fault webhook-1]
  test(
    'the same delivery a thousand times makes one hint, and an old delivery makes none',
    { timeout: 40_000 },
    async () => {
      const [accepted, duplicate, stale] = [
        await received('accepted'),
        await received('duplicate'),
        await received('stale'),
      ]
      const timestamp = String(Date.now())
      const statuses = await Promise.all(Array.from({ length: 1000 }, () => deliver(BODY, timestamp)))
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(await received('accepted')).toBe(accepted + 1)
      expect(await received('duplicate')).toBe(duplicate + 999)
      expect(await deliver(BODY, String(Date.now() - 3_600_000))).toBe(401)
      expect(await received('stale')).toBe(stale + 1)
    },
  )

  test('a page of another host name that resolves to us gets nothing, and neither does a path with ..', async () => {
    for (const host of [
      'evil.example',
      `evil.example:${admin}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '[::1].evil',
      '',
    ]) {
      const answer = await exchangeRaw(
        admin,
        `GET /api/status HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
      )
      expect(answer).toMatch(/^HTTP\/1.1 40[03] /)
    }
    const climbs = ['/console/../../package.json', '/console/%2e%2e/%2e%2e/package.json', '/console/..%2f..%2fpackage.json', '/console/....//package.json', '/console/%5c..%5cpackage.json', '/console/%00', '//etc/passwd', '/console/%252e%252e/package.json'] // prettier-ignore
    for (const path of climbs) {
      const answer = await exchangeRaw(
        admin,
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      )
      expect([path, answer.split(' ')[1], answer.includes('"dependencies"')]).toEqual([
        path,
        expect.stringMatching(/^(400|404)$/),
        false,
      ])
    }
  })
})
