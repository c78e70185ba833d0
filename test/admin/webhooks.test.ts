import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Listener } from '../../src/sidecar/admin/listener.ts'
import { createWebhookListener } from '../../src/sidecar/admin/webhooks.ts'
import type { WebhookDelivery } from '../../src/core/webhook.ts'
import { until } from '../support/until.ts'
import { exchangeRaw } from './raw.ts'
import { send } from './running.ts'
import { memoryLog } from './seed.ts'

let listener: Listener
let port: number
let url: string
let received: WebhookDelivery[]
let outcomes: string[]
type Answer = { status: 200 | 401 | 503; outcome: 'accepted' | 'forged' | 'store_failed' }
let answer: () => Answer | Promise<Answer>
const log = memoryLog()

beforeEach(async () => {
  received = []
  outcomes = []
  answer = () => ({ status: 200, outcome: 'accepted' })
  await open({ headers: 150, request: 300, checkedEvery: 20 })
})
afterEach(() => listener.close())

/** `times`: limits of the listener; without them it has its own. */
async function open(times?: { headers: number; request: number; checkedEvery: number }): Promise<void> {
  listener = createWebhookListener({
    listen: { host: '127.0.0.1', port: 0 },
    path: '/hooks/:in',
    screen: ({ signature }) => (signature === 'bad' ? { status: 401, outcome: 'forged' } : null),
    receive(delivery, answered) {
      received.push(delivery)
      const given = answer()
      if (given instanceof Promise) void given.then(answered)
      else answered(given)
    },
    observer: { webhook: (outcome) => void outcomes.push(outcome) },
    log,
    ...(times === undefined ? {} : { times }),
  })
  ;({ port } = await listener.listen())
  url = `http://127.0.0.1:${port}/hooks/:in`
}

const SIGNED = { 'x-service-signature': 'ab12', 'x-service-timestamp': '1700000000000' }

it('hands over the raw bytes whatever type they claim to have', async () => {
  const bytes = Buffer.from([0, 0xff, 0x7b, 0x0d, 0x0a])
  for (const type of ['application/json', 'application/json; charset=utf-16', ';;nonsense', 'text/plain']) {
    const reply = await send(`${url}?x=1`, {
      method: 'POST',
      headers: { ...SIGNED, 'content-type': type },
      body: bytes,
    })
    expect([reply.status, reply.json]).toEqual([200, { received: true }])
  }
  await send(url, { method: 'POST', headers: SIGNED, body: bytes })
  expect(received).toHaveLength(5)
  for (const delivery of received) {
    expect(delivery).toEqual({ signature: 'ab12', timestamp: '1700000000000', body: bytes })
  }
})

it('hands over an empty body', async () => {
  await send(url, { method: 'POST', headers: SIGNED })
  expect(received).toEqual([{ signature: 'ab12', timestamp: '1700000000000', body: Buffer.alloc(0) }])
})

it.each([
  [401, 'close'],
  [503, 'keep-alive'],
] as const)('answers %i as the handler does, with the header connection: %s', async (status, connection) => {
  answer = () => ({ status, outcome: 'forged' })
  const reply = await send(url, { method: 'POST', body: '{}' })
  expect([reply.status, reply.json['received']]).toEqual([status, false])
  expect(reply.headers['connection']).toBe(connection)
  expect(received[0]).toMatchObject({ signature: undefined, timestamp: undefined })
})

it('answers 503 when the delivery could not be stored, without the reason', async () => {
  answer = () => {
    throw new Error('disk full at /secret')
  }
  const reply = await send(url, { method: 'POST', body: '{}' })
  expect(reply.status).toBe(503)
  // The fault may have come before the body was read.
  expect(reply.headers['connection']).toBe('close')
  expect(reply.text).not.toContain('secret')
})

it.each(['x-service-signature: ab12', 'x-service-timestamp: 1700000000000'])(
  'treats a doubled %s as missing',
  async (line) => {
    const head = `POST /hooks/:in HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n${line}\r\n${line}\r\n\r\n`
    await exchangeRaw(port, `${head}{}`)
    expect(received).toEqual([{ signature: undefined, timestamp: undefined, body: Buffer.from('{}') }])
  },
)

it('accepts only POST, and only at its path', async () => {
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND']) {
    const reply = await exchangeRaw(port, `${method} /hooks/:in HTTP/1.1\r\nhost: a\r\n\r\n`)
    expect(reply).toMatch(/^HTTP\/1.1 405 [^]*allow: POST\r\n/i)
  }
  for (const path of ['/', '/hooks', '/hooks/:in/', '/hooks/x', '//hooks/:in', '/hooks/%3Ain', '*']) {
    const reply = await exchangeRaw(port, `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`)
    expect(reply).toMatch(/^HTTP\/1.1 404 /)
  }
  expect(received).toEqual([])
})

it('refuses a compressed body before it reads it', async () => {
  const refused = await send(url, { method: 'POST', headers: { 'content-encoding': 'gzip' }, body: 'x' })
  expect(refused.status).toBe(415)
  expect(received).toEqual([])
  const plain = await send(url, { method: 'POST', headers: { 'content-encoding': 'identity' }, body: 'x' })
  expect(plain.status).toBe(200)
})

it('refuses a request by its headers without waiting for the body', async () => {
  const head = `POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\nx-service-signature: bad\r\n\r\n`
  expect(await exchangeRaw(port, head)).toMatch(/^HTTP\/1.1 401 [^]*connection: close\r\n/i)
  expect(received).toEqual([])
})

const CHUNKED = 'POST /hooks/:in HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n'

it('accepts a body in small chunks, and refuses one with too many of them', async () => {
  const few = await exchangeRaw(
    port,
    `${CHUNKED}connection: close\r\n\r\n${'1\r\nx\r\n'.repeat(1000)}0\r\n\r\n`,
  )
  expect(few).toMatch(/^HTTP\/1.1 200 /)
  expect(received.map(({ body }) => body.toString())).toEqual(['x'.repeat(1000)])
  const many = await exchangeRaw(port, `${CHUNKED}\r\n${'1\r\nx\r\n'.repeat(2000)}0\r\n\r\n`)
  expect(many).toMatch(/^HTTP\/1.1 400 [^]*connection: close\r\n/i)
})

it('requires content-length for a body over 64 KiB', async () => {
  const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`
  expect(await exchangeRaw(port, `${CHUNKED}connection: close\r\n\r\n${chunk(65_536)}`)).toMatch(
    /^HTTP\/1.1 200 /,
  )
  expect(await exchangeRaw(port, `${CHUNKED}\r\n${chunk(65_537)}`)).toMatch(/^HTTP\/1.1 413 /)
})

it('reads four bodies of 1 MiB at once, answers 503 to a fifth, and always accepts short ones', async () => {
  const half = `POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 1048576\r\n\r\n`
  const slow = Array.from({ length: 4 }, () => exchangeRaw(port, half))
  await until('a refusal', async () => (await exchangeRaw(port, half)).startsWith('HTTP/1.1 503 '))
  expect((await send(url, { method: 'POST', body: 'x'.repeat(65_536) })).status).toBe(200)
  expect(outcomes).toContain('busy')
  const warnings = log.lines.filter(({ message }) => message.includes('too many long bodies'))
  expect(warnings).toEqual([expect.objectContaining({ level: 'warn', details: { times: 1 } })])
  // What the headers condemn is not asked to try again.
  const forged = half.replace('\r\n\r\n', '\r\nx-service-signature: bad\r\n\r\n')
  expect(await exchangeRaw(port, forged)).toMatch(/^HTTP\/1.1 401 /)
  // Their time is over, and with it their share of the memory.
  await Promise.all(slow)
  expect((await send(url, { method: 'POST', body: Buffer.alloc(1_048_576) })).status).toBe(200)
})

it('refuses more than a mebibyte, announced or not, and counts it', async () => {
  // On a busy machine a mebibyte takes longer than the 0.3 s of the other tests.
  await listener.close()
  await open()
  const exact = await send(url, { method: 'POST', body: Buffer.alloc(1024 * 1024) })
  expect(exact.status).toBe(200)
  const announced = await exchangeRaw(
    port,
    'POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 1048577\r\n\r\n',
  )
  expect(announced).toMatch(/^HTTP\/1.1 413 [^]*connection: close\r\n/i)
  const chunk = `100001\r\n${'x'.repeat(0x100001)}\r\n0\r\n\r\n`
  const chunked = await exchangeRaw(
    port,
    `POST /hooks/:in HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`,
  )
  expect(chunked).toMatch(/^HTTP\/1.1 413 /)
  expect(outcomes).toEqual(['too_large', 'too_large'])
  expect(received).toHaveLength(1)
})

it.each([
  ['headers that never end', 'POST /hooks/:in HTTP/1.1\r\nhost: a\r\nx-slow: '],
  ['a body that never comes', 'POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{'],
])('cuts off %s', async (_name, bytes) => {
  expect(await exchangeRaw(port, bytes)).toMatch(/^(HTTP\/1.1 408 |$)/)
  expect(received).toEqual([])
})

it.each([
  ['headers that are too long', `POST /hooks/:in HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(9000)}\r\n\r\n`, 431],
  ['what is no HTTP', '\u0016\u0003\u0001hello\r\n\r\n', 400],
  [
    'two lengths',
    'POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
    400,
  ],
  [
    'a length and chunks',
    'POST /hooks/:in HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
])('refuses %s', async (_name, bytes, status) => {
  expect(await exchangeRaw(port, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(received).toEqual([])
})

it('lets a delivery that is under way end when it closes', async () => {
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  let arrived: () => void = () => undefined
  const here = new Promise<void>((resolve) => (arrived = resolve))
  answer = async () => {
    arrived()
    await held
    return { status: 200, outcome: 'accepted' }
  }
  const reply = send(url, { method: 'POST', body: '{}' })
  await here
  const closed = listener.close()
  release()
  expect((await reply).status).toBe(200)
  await closed
})
