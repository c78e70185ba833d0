import { createServer, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NetworkFault } from '../../src/std/errors.ts'
import type { Http, HttpReply, HttpRequest, Random } from '../../src/std/ports.ts'
import { createHttp } from '../../src/system/http.ts'
import { seededRandom } from '../support/ports.ts'
import { undiciExchange } from './undici-exchange.ts'
import { repeats } from '../support/full.ts'

/**
 * Our parser of answers beside undici's: the same bytes, cut in the same places, over real sockets. What one
 * takes for an answer the other takes for the same answer, and what one refuses the other refuses, but for STRICTER.
 */

const MAX_BODY = 40
/** Answers that are made up, besides those that are listed. */
const MADE = 1500
/** Exchanges side by side. */
const AT_ONCE = 8

/** Refused here and accepted by undici. No known sender uses it, so it is not worth the code. */
const STRICTER: readonly RegExp[] = [
  // Versions other than 1.0 and 1.1.
  /HTTP\/(?!1\.[01] )/,
  // Several transfer encodings, or an empty one.
  /transfer-encoding:[^]*\r\ntransfer-encoding:|transfer-encoding:[\t ]*\r\n/i,
  // A length with a space behind it, which undici takes of an answer without a body.
  /content-length:[\t ]*\d+ +\r/i,
  // A line that two CR end.
  /\r\r/,
  // An extension of a chunk without a name or without a value.
  /^[0-9a-f]+;[^\r\n]*(?<=[;=])(?:=|;|\r)/im,
]

type Outcome = { status: number; headers: Record<string, string>; body: string; truncated: boolean } | string

let answer: { bytes: Buffer; cuts: readonly number[] } = { bytes: Buffer.alloc(0), cuts: [] }
const sockets = new Set<Socket>()
const answers = new Map<string, { bytes: Buffer; cuts: readonly number[] }>()
const server = createServer({ noDelay: true }, (socket) => {
  sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined))
  socket.once('data', (head) => {
    const key = /^POST \/(\d+)/.exec(head.toString('latin1'))?.[1] ?? ''
    void play(socket, answers.get(key) ?? answer)
  })
})
const http: Http = createHttp()
let url = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(async () => {
  await http.close()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
})

/** Writes the pieces one by one, each once the other side had time to read the one before, and closes. */
async function play(
  socket: Socket,
  { bytes, cuts }: { bytes: Buffer; cuts: readonly number[] },
): Promise<void> {
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    if (cut > from) socket.write(bytes.subarray(from, cut))
    from = Math.max(from, cut)
    await new Promise(setImmediate)
  }
  socket.end()
}

const request = (key: string): HttpRequest => ({
  method: 'POST',
  url: `${url}/${key}`,
  headers: {},
  body: 'x',
  timeout: 5000,
  maxBody: MAX_BODY,
  pool: { size: 1, fresh: true },
})

function outcomeOf(reply: HttpReply | NetworkFault): Outcome {
  if (reply instanceof NetworkFault) return reply.kind
  const { status, headers, body, truncated } = reply
  const trimmed = Object.entries(headers).map(
    ([name, value]) => [name, value.trim().replace(/[\t ]+,/g, ',')] as const,
  )
  return { status, headers: Object.fromEntries(trimmed), body, truncated }
}

const whole = (text: string) => ({ bytes: Buffer.from(text, 'latin1'), cuts: [] as readonly number[] })

let number = 0

async function both(bytes: Buffer, cuts: readonly number[]): Promise<{ ours: Outcome; theirs: Outcome }> {
  const key = String(++number)
  answers.set(key, { bytes, cuts })
  const [ours, theirs] = await Promise.all([
    new Promise<Outcome>((resolve) => http.send(request(key), (outcome) => resolve(outcomeOf(outcome)))),
    undiciExchange(request(key)).then(outcomeOf),
  ])
  answers.delete(key)
  return { ours, theirs }
}

const differs = (text: string, { ours, theirs }: { ours: Outcome; theirs: Outcome }): boolean => {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return false
  return !(ours === 'unreadable' && STRICTER.some((pattern) => pattern.test(text)))
}

const STATUS_LINES = [
  'HTTP/1.1 200 OK', 'HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.0 200 OK', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 500 Internal\tServer Error', 'HTTP/1.1 410 Gone', 'HTTP/1.1 99 x', 'HTTP/1.1 1000 x', 'HTTP/1.1  200 OK', 'HTTP/1.1\t200 OK',
  'http/1.1 200 OK', 'HTTP/1.2 200 OK', 'HTTP/2.0 200 OK', 'HTTP/11 200 OK', 'HTTP/1.1 2x0 OK', 'HTTP/1.1 200OK', 'HTTP/1.1 600 x', 'HTTP/1.1 999 x',
  'HTTP/1.1 200 \u00e4\u0001', 'ICY 200 OK', '', '\r\nHTTP/1.1 200 OK', '\nHTTP/1.1 200 OK', ' HTTP/1.1 200 OK', 'HTTP/1.1 000 x', 'HTTP/1.1 050 x', 'HTTP/1.1 1e2 x', 'HTTP/1.1 2e2 x', 'HTTP/1.1 +20 x', 'HTTP/1.1 20 x',
] // prettier-ignore
const INTERIM = [
  'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n', 'HTTP/1.1 102 Processing\r\ncontent-length: 3\r\n\r\n',
  'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', 'HTTP/1.1 101 Switching\r\n\r\n', 'HTTP/1.1 199 x\r\ntransfer-encoding: chunked\r\n\r\n',
] // prettier-ignore
const HEADERS = [
  'content-length: 5', 'Content-Length:5', 'content-length: 5 ', 'content-length: 05', 'content-length: +5', 'content-length: 5, 5', 'content-length:', 'content-length: 0',
  'content-length: 99', 'content-length: 3', 'content-length: 99999999999999999999', 'content-length: 0x5', 'content-length: -1', 'content-length : 5', 'content-length: 5\t', 'content-length:\t5',
  'transfer-encoding: chunked', 'Transfer-Encoding: Chunked', 'transfer-encoding: gzip, chunked', 'transfer-encoding: chunked, gzip', 'transfer-encoding: identity',
  'transfer-encoding: xchunked', 'transfer-encoding: chunked ', 'transfer-encoding:', 'transfer-encoding: chunked;q=1', 'transfer-encoding: gzip,chunked', 'transfer-encoding: x chunked',
  'connection: close', 'connection: keep-alive', 'connection: Close, x', 'connection: upgrade', 'upgrade: h2c', 'keep-alive: timeout=5', 'proxy-connection: close',
  'x-a: b', 'x-a:b', 'x-a:  b\t', 'x-a', ': b', 'x a: b', 'x-a : b', 'x-a: \u00e4', 'x-a: b\u0000c', 'x-a: b\u007fc', 'x-a: b\rc', 'x-a: b\nx-b: c', ' x-a: b', '\tx-a: b', 'x-\u00e4: b', 'x-a:',
  'x(a: b', 'retry-after: 5', 'Retry-After: 7', 'date: Fri, 21 Nov 2025 05:00:00 GMT', `x-long: ${'y'.repeat(300)}`,
] // prettier-ignore
const BODIES = [
  '', 'hello', 'hel', 'hello, and more', 'x'.repeat(MAX_BODY), 'x'.repeat(MAX_BODY + 1), 'gr\u00fc\u00dfe', '5\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n', '5\r\nhell', '5\r\nhello',
  '5\r\nhello0\r\n\r\n', '5\nhello\r\n0\r\n\r\n', '5;a=b\r\nhello\r\n0\r\n\r\n', '5;a\r\nhello\r\n0\r\n\r\n', '5 \r\nhello\r\n0\r\n\r\n', '5 ;a\r\nhello\r\n0\r\n\r\n', '0\r\n\r\n', '0\r\nx-t: a\r\n\r\n',
  '0\r\nx t: a\r\n\r\n', '0\r\ncontent-length: 5\r\n\r\n', '0\r\nx-t: \u0001\r\n\r\n', '05\r\nhello\r\n00\r\n\r\n', 'A\r\n0123456789\r\n0\r\n\r\n', 'a\r\n0123456789\r\n0\r\n\r\n', 'g\r\n\r\n', '\r\n', '-5\r\nhello\r\n',
  'fffffffffffffffff\r\nhello', '5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n', '5;a="b"\r\nhello\r\n0\r\n\r\n', '5;a="\r\nhello\r\n0\r\n\r\n', '5;\r\nhello\r\n0\r\n\r\n', '5;a=\r\nhello\r\n0\r\n\r\n', '5;a b\r\nhello\r\n0\r\n\r\n', '5;=b\r\nhello\r\n0\r\n\r\n',
  `1e\r\n${'x'.repeat(30)}\r\n1e\r\n${'y'.repeat(30)}\r\n0\r\n\r\n`, '0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 'helloHTTP/1.1 500 x\r\n\r\n', '5\r\nhello\r\n\r\n0\r\n\r\n', '5\r\nhello\r0\r\n\r\n', '0;a=b;c\r\n\r\n', '0\r\ntransfer-encoding: chunked\r\n\r\n',
] // prettier-ignore

const oneOf = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T

/** Nearly right: a few parts, sometimes with one byte changed. */
function madeUp(random: Random): Buffer {
  const interim = random.next() < 0.15 ? oneOf(random, INTERIM) : ''
  const line = random.next() < 0.7 ? 'HTTP/1.1 200 OK' : oneOf(random, STATUS_LINES)
  const headers = Array.from({ length: Math.floor(random.next() * 4) }, () => oneOf(random, HEADERS))
  const text = `${interim}${[line, ...headers].join('\r\n')}\r\n\r\n${oneOf(random, BODIES)}`
  const bytes = Buffer.from(text, 'latin1')
  if (random.next() < 0.3) bytes[Math.floor(random.next() * bytes.length)] = oneOf(random, [0, 9, 10, 13, 32, 48, 53, 58, 59, 65, 127, 128, 255]) // prettier-ignore
  return bytes
}

function cutsOf(random: Random, length: number): number[] {
  const count = random.next() < 0.4 ? 0 : Math.floor(random.next() * 4)
  return Array.from({ length: count }, () => Math.floor(random.next() * length)).toSorted((a, b) => a - b)
}

describe('an answer is read as undici reads it', () => {
  it.each([
    ['status lines', STATUS_LINES.map((line) => `${line}\r\ncontent-length: 5\r\n\r\nhello`)],
    ['interim answers', INTERIM.map((interim) => `${interim}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello`)],
    ['headers', HEADERS.flatMap((header) => BODIES.slice(0, 8).map((body) => `HTTP/1.1 200 OK\r\n${header}\r\n\r\n${body}`))],
    ['bodiless answers', ['204', '304'].flatMap((status) => HEADERS.map((header) => `HTTP/1.1 ${status} x\r\n${header}\r\n\r\n`))],
    ['chunked bodies', BODIES.map((body) => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}`)],
    ['pairs of headers that frame', HEADERS.slice(0, 27).flatMap((one) => HEADERS.slice(0, 27).map((two) => `HTTP/1.1 200 OK\r\n${one}\r\n${two}\r\n\r\n5\r\nhello\r\n0\r\n\r\n`))],
  ])('%s', async (_what, texts) => {
    expect(await differences(texts.map((text) => whole(text)))).toEqual([])
  }) // prettier-ignore

  it('cut at every byte', async () => {
    const texts = [
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-a: b\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\na\r\n0123456789\r\n0\r\nx-t: a\r\n\r\n',
      'HTTP/1.1 200 OK\r\n\r\nhello',
    ]
    const cut = texts.flatMap((text) =>
      Array.from({ length: text.length }, (_, at) => ({ ...whole(text), cuts: [at] })),
    )
    expect(await differences(cut)).toEqual([])
    const bytewise = texts.map((text) => ({
      ...whole(text),
      cuts: Array.from({ length: text.length }, (_, at) => at),
    }))
    expect(await differences(bytewise)).toEqual([])
  })

  it('a long head byte by byte', async () => {
    const head = `HTTP/1.1 200 OK\r\nx-long: ${'y'.repeat(3000)}\r\ncontent-length: 5\r\n\r\n`
    const cuts = Array.from({ length: head.length }, (_, at) => at)
    expect(await differences([{ ...whole(`${head}hello`), cuts }])).toEqual([])
  })

  it('made up', async () => {
    const random = seededRandom()
    const made = Array.from({ length: repeats(MADE) }, () => {
      const bytes = madeUp(random)
      return { bytes, cuts: cutsOf(random, bytes.length) }
    })
    expect(await differences(made)).toEqual([])
  })
})

async function differences(list: readonly { bytes: Buffer; cuts: readonly number[] }[]): Promise<unknown[]> {
  const found: unknown[] = []
  const left = [...list]
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const outcomes = await both(next.bytes, next.cuts)
      const text = next.bytes.toString('latin1')
      if (differs(text, outcomes)) found.push({ text, cuts: next.cuts, ...outcomes })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return found
}
