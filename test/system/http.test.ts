import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { NetworkFault } from '../../src/std/errors.ts'
import type { Http, HttpPool, HttpReply, HttpRequest } from '../../src/std/ports.ts'
import { createHttp } from '../../src/system/http.ts'
import { CERTIFICATE } from '../support/certificate.ts'
import { startServer, until } from '../support/service/server.ts'
import type { Answerer, TestServer } from '../support/service/server.ts'

/** As an exchange, whichever of the port's two ways it takes. */
type Way = (http: Http, request: HttpRequest) => Promise<HttpReply>

const WAYS: readonly (readonly [string, Way])[] = [
  ['exchanged', (http, request) => http.exchange(request)],
  ['sent', sendAsExchange],
]

function sendAsExchange(http: Http, { signal, ...request }: HttpRequest): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(new NetworkFault('aborted', 'not sent'))
    const attempt = http.send(request, (outcome) => {
      if (outcome instanceof NetworkFault) reject(outcome)
      else resolve(outcome)
    })
    signal?.addEventListener('abort', () => attempt.abort())
  })
}

/** What is late by the clock of this very process, which may stand still: undici's own timers would be by half a second. */
const late = (timeout: number): Promise<string> => pause(timeout + 150, 'late')

const http = createHttp()
const servers: AsyncDisposable[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server[Symbol.asyncDispose]()))
})

afterAll(() => http.close())

async function serve(answer: Answerer): Promise<TestServer> {
  const server = await startServer(answer)
  servers.push(server)
  return server
}

/** A peer that speaks HTTP as it likes. */
async function raw(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push({
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const ask = (url: string, more: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'GET',
  url,
  headers: {},
  timeout: 5000,
  maxBody: 65_536,
  ...more,
})

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
/** Its body looks like an answer. */
const DONE = `HTTP/1.1 200 OK\r\ncontent-length: ${CONTINUE.length}\r\n\r\n${CONTINUE}`

const faultOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'answered',
    (error: unknown) => error,
  )

describe.each(WAYS)('what is %s', (_way, exchange) => {
  describe('an exchange', () => {
    test('sends what it is given and returns what came', async () => {
      const server = await serve(() => ({ status: 201, headers: { 'X-Thing': 'a' }, body: 'grüß' }))
      const reply = await exchange(
        http,
        ask(`${server.url}/hook?x=1`, { method: 'POST', headers: { 'x-mine': 'b' }, body: 'ü' }),
      )
      expect(reply).toMatchObject({
        status: 201,
        body: 'grüß',
        truncated: false,
        headers: { 'x-thing': 'a' },
      })
      expect(server.asked[0]).toMatchObject({ method: 'POST', path: '/hook', query: { x: '1' }, body: 'ü' })
      expect(server.asked[0]?.headers).toMatchObject({ 'x-mine': 'b', 'content-length': '2' })
    })

    test('joins a header that comes several times', async () => {
      const server = await serve((_asked, response) => {
        response.writeHead(200, { 'x-many': ['a', 'b'] }).end()
        return null
      })
      expect((await exchange(http, ask(server.url))).headers['x-many']).toBe('a, b')
    })

    test.each([
      ['at once', [`${CONTINUE}${DONE}`]],
      ['in a piece of its own', [CONTINUE, DONE]],
      ['in pieces', ['HTTP/1.1 100 Cont', 'inue\r\n', `\r\n${DONE}`]],
      ['cut within its status', ['HTTP/1.1 1', `00 Continue\r\n\r\n${DONE}`]],
      ['byte by byte', [...CONTINUE.split(''), DONE]],
      ['twice', [`${CONTINUE}${CONTINUE}`, DONE]],
      ['twice, the first one cut', ['HTTP/1.1 100 Cont', `inue\r\n\r\n${CONTINUE}${DONE}`]],
      ['with others', [`HTTP/1.1 103 Early Hints\r\n\r\n`, DONE]],
    ])('skips 100 Continue, which it did not ask for, %s', async (_how, pieces) => {
      const url = await raw((socket) => {
        socket.setNoDelay(true)
        socket.on('data', () =>
          pieces.forEach((piece, nth) => setTimeout(() => socket.write(piece), 30 * nth)),
        )
      })
      const pool = { size: 1 }
      for (let round = 0; round < 2; round++) {
        const reply = await exchange(http, ask(url, { pool, method: 'POST', body: 'x' }))
        expect(reply).toMatchObject({ status: 200, body: CONTINUE })
      }
    })

    // [fault callback-3]
    test('follows no redirect', async () => {
      const server = await serve(() => ({ status: 307, headers: { location: '/elsewhere' } }))
      expect((await exchange(http, ask(server.url))).status).toBe(307)
      expect(server.asked).toHaveLength(1)
    })

    test('uses one connection again for what comes one after the other', async () => {
      const server = await serve(() => ({}))
      for (let one = 0; one < 20; one++) await exchange(http, ask(server.url))
      expect(server.accepted()).toBe(1)
    })

    test('keeps the connection of an origin while another has URLs by the thousand', async () => {
      const [busy, other] = [await serve(() => ({})), await serve(() => ({}))]
      const pool = { size: 1 }
      await exchange(http, ask(other.url, { pool }))
      for (let one = 0; one < 1100; one++) await exchange(http, ask(`${busy.url}/sessions/${one}`, { pool }))
      await exchange(http, ask(other.url, { pool }))
      expect([busy.accepted(), other.accepted()]).toEqual([1, 1])
    })

    test('opens no more connections than allowed, and the others wait their turn', async () => {
      const server = await serve(() => ({}))
      const pool = { size: 3 }
      const wanted = Array.from({ length: 50 }, () => exchange(http, ask(server.url, { pool })))
      await Promise.all(wanted)
      expect(server.accepted()).toBe(3)
      expect(server.asked).toHaveLength(50)
    })

    test('does not wait for requests of another pool', async () => {
      const server = await serve(({ path }) => (path === '/long' ? null : {}))
      const [mine, theirs] = [{ size: 1 }, { size: 1 }]
      const long = faultOf(exchange(http, ask(`${server.url}/long`, { pool: theirs, timeout: 10_000 })))
      await until(() => server.asked.length === 1)
      expect((await exchange(http, ask(server.url, { pool: mine, timeout: 3000 }))).status).toBe(200)
      expect((await exchange(http, ask(server.url, { timeout: 3000 }))).status).toBe(200)
      await servers.pop()?.[Symbol.asyncDispose]()
      expect(await long).toMatchObject({ kind: 'reset' })
    })

    test('of a fresh pool meets no connection that its peer closes just then', async () => {
      // Each connection serves once, and is reset when something more comes.
      const url = await raw((socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
          socket.once('data', () => socket.resetAndDestroy())
        })
      })
      const outcomes = async (pool: HttpPool): Promise<unknown[]> => {
        const said: unknown[] = []
        for (let one = 0; one < 6; one++)
          said.push(
            await exchange(http, ask(url, { pool, method: 'POST', body: 'x' })).then(
              ({ status }) => status,
              (fault: NetworkFault) => fault.kind,
            ),
          )
        return said
      }
      expect(await outcomes({ size: 2, fresh: true })).toEqual([200, 200, 200, 200, 200, 200])
      expect(await outcomes({ size: 2 })).toContain('reset')
    })

    test('does not treat an interim answer as the answer', async () => {
      const url = await raw((socket) => {
        socket.once('data', () =>
          socket.write('HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
        )
      })
      expect(await exchange(http, ask(url))).toMatchObject({ status: 200, body: 'ok' })
    })

    test('survives header names that mean something to JavaScript', async () => {
      const url = await raw((socket) => {
        socket.once('data', () =>
          socket.end(
            'HTTP/1.1 200 OK\r\n__proto__: a\r\nconstructor: b\r\ntoString: c\r\ncontent-length: 0\r\n\r\n',
          ),
        )
      })
      const { status, headers } = await exchange(http, ask(url))
      expect([status, headers['constructor'], headers['tostring']]).toEqual([200, 'b', 'c'])
      expect(Object.prototype).not.toHaveProperty('a')
    })
  })

  describe('an answer that is too long', () => {
    test('is cut at the limit and its connection closed', async () => {
      const server = await serve((_asked, response) => {
        response.writeHead(200)
        const more = (): void => {
          while (response.write('x'.repeat(16_384)));
          response.once('drain', more)
        }
        more()
        return null
      })
      const reply = await exchange(http, ask(server.url, { maxBody: 100_000 }))
      expect(reply).toMatchObject({ status: 200, truncated: true })
      expect(reply.body).toHaveLength(100_000)
      await until(() => server.open() === 0)
    })

    test('of exactly the limit is whole', async () => {
      const server = await serve(() => ({ body: 'x'.repeat(1000) }))
      expect(await exchange(http, ask(server.url, { maxBody: 1000 }))).toMatchObject({ truncated: false })
      expect(await exchange(http, ask(server.url, { maxBody: 999 }))).toMatchObject({ truncated: true })
      expect(await exchange(http, ask(server.url, { maxBody: 0 }))).toMatchObject({
        truncated: true,
        body: '',
      })
    })

    test('in its head is a fault', async () => {
      const url = await raw((socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\n')
          const more = (): void => {
            while (!socket.destroyed && socket.write(`x-bomb: ${'y'.repeat(4000)}\r\n`));
            if (!socket.destroyed) socket.once('drain', more)
          }
          more()
        })
      })
      expect(await faultOf(exchange(http, ask(url)))).toBeInstanceOf(NetworkFault)
    })
  })

  describe('a timeout', () => {
    test.each([
      ['a peer that never answers', (socket: Socket) => void socket.resume()],
      [
        'a peer that stops in the middle of its answer',
        (socket: Socket) => {
          socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf'))
        },
      ],
      [
        'a peer that drips',
        (socket: Socket) => {
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n')
          const drip = setInterval(() => socket.write('x'), 5)
          socket.on('close', () => clearInterval(drip))
        },
      ],
    ])('ends %s on time', async (_what, behave) => {
      const url = await raw(behave)
      const started = performance.now()
      const fault = faultOf(exchange(http, ask(url, { timeout: 150 })))
      expect(await Promise.race([fault, late(150)])).toMatchObject({ kind: 'timeout' })
      expect(performance.now() - started).toBeGreaterThan(148)
    })

    test('includes the wait for a connection, and frees its slot for the requests behind it', async () => {
      let hang = true
      const pool = { size: 1 }
      const server = await serve(() => (hang ? null : {}))
      const stuck = faultOf(exchange(http, ask(server.url, { pool, timeout: 400 })))
      const waiting = faultOf(exchange(http, ask(server.url, { pool, timeout: 100 })))
      const patient = exchange(http, ask(server.url, { pool, timeout: 5000 }))
      expect(await waiting).toMatchObject({ kind: 'timeout' })
      hang = false
      expect(await stuck).toMatchObject({ kind: 'timeout' })
      expect((await patient).status).toBe(200)
      expect(server.asked).toHaveLength(2)
      expect(server.accepted()).toBe(2)
    })

    test('of a connection that never opens lets the next one try on a new one', async () => {
      const own = createHttp({ connectTimeout: 300 })
      const sockets = new Set<Socket>()
      let accepted = 0
      // It accepts and then says nothing, so that TLS never comes up.
      const url = await raw((socket) => {
        accepted++
        sockets.add(socket.resume())
        socket.on('close', () => sockets.delete(socket))
      })
      const secure = url.replace('http:', 'https:')
      const pool = { size: 1 }
      for (let one = 1; one <= 3; one++) {
        const fault = await faultOf(exchange(own, ask(secure, { pool, timeout: 30 })))
        expect(fault).toMatchObject({ kind: 'unreachable' })
        // On a busy machine the other side hears of it later than we gave up.
        await until(() => accepted === one)
      }
      await until(() => sockets.size === 0)
      await own.close()
    })
  })

  describe('a signal', () => {
    test('ends an exchange under way, and one that waits for its connection', async () => {
      const server = await serve(() => null)
      const abort = new AbortController()
      const { signal } = abort
      const pool = { size: 1 }
      const both = [1, 2].map(() => faultOf(exchange(http, ask(server.url, { pool, signal }))))
      await until(() => server.asked.length === 1)
      abort.abort()
      expect(await Promise.all(both)).toMatchObject([{ kind: 'aborted' }, { kind: 'aborted' }])
      await until(() => server.open() === 0)
    })

    test('that was given before means that nothing is sent', async () => {
      const server = await serve(() => ({}))
      expect(await faultOf(exchange(http, ask(server.url, { signal: AbortSignal.abort() })))).toMatchObject({
        kind: 'aborted',
      })
      expect(server.accepted()).toBe(0)
    })
  })

  describe('faults', () => {
    test('unreachable, while others wait for the same connection: each fails, and the process keeps running', async () => {
      const http = createHttp()
      try {
        const url = await raw((socket) => socket.destroy())
        await servers.pop()?.[Symbol.asyncDispose]()
        const pool = { size: 1 }
        const asked = Array.from({ length: 5 }, () => exchange(http, ask(url, { pool })))
        const faults = await Promise.all(asked.map(faultOf))
        expect(faults).toMatchObject(Array.from({ length: 5 }, () => ({ kind: 'unreachable' })))
      } finally {
        await http.close()
      }
    })

    test('unreachable: no listener', async () => {
      const probe = createServer()
      await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
      const { port } = probe.address() as AddressInfo
      await new Promise((resolve) => probe.close(resolve))
      expect(await faultOf(exchange(http, ask(`http://127.0.0.1:${port}`)))).toMatchObject({
        kind: 'unreachable',
      })
      expect(await faultOf(exchange(http, ask(`http://localhost:${port}`)))).toMatchObject({
        kind: 'unreachable',
      })
    })

    test.each([
      ['reset', 'before a byte of its answer', ''],
      ['unreadable', 'after a byte of its answer', 'H'],
      ['unreadable', 'within the head of its answer', 'HTTP/1.1 200 OK\r\ncont'],
      ['unreadable', 'after an interim answer', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
      ['unreadable', 'after 100 Continue', CONTINUE],
      ['unreadable', 'within the body of its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'],
      [
        'unreadable',
        'within a chunked body',
        'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      ],
    ])('%s: the peer closes %s', async (kind, _when, answer) => {
      const url = await raw((socket) => {
        socket.once('data', () => socket.end(answer))
      })
      expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind })
    })

    test('a refused connection that others wait for fails them one by one, and ends no program', async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      await new Promise((resolve) => server.close(resolve))
      const pool = { size: 1 }
      const refused = Array.from({ length: 3 }, () =>
        faultOf(exchange(http, ask(`http://127.0.0.1:${port}`, { pool }))),
      )
      const kind = 'unreachable'
      expect(await Promise.all(refused)).toMatchObject([{ kind }, { kind }, { kind }])
    })

    test('reset: the peer resets', async () => {
      const url = await raw((socket) => {
        socket.once('data', () => socket.resetAndDestroy())
      })
      expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'reset' })
    })

    describe('over TLS', () => {
      const trusted = getCACertificates('default')
      afterEach(() => setDefaultCACertificates(trusted))

      async function secure(options: TlsOptions, onSocket: (socket: TLSSocket) => void): Promise<string> {
        const server = createTlsServer({ ...CERTIFICATE, ...options }, (socket) => {
          socket.on('error', () => undefined)
          onSocket(socket)
        })
        server.on('tlsClientError', () => undefined)
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        servers.push({ [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) })
        return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
      }

      // [fault http-3]
      test('unreachable: its certificate is not trusted', async () => {
        const requests: Buffer[] = []
        const url = await secure({}, (socket) => socket.on('data', (chunk: Buffer) => requests.push(chunk)))
        expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'unreachable' })
        expect(requests).toEqual([])
      })

      test.each([
        ['closes', (socket: Socket) => socket.end()],
        ['resets', (socket: Socket) => socket.resetAndDestroy()],
        ['does not speak TLS', (socket: Socket) => socket.end('SSH-2.0-OpenSSH\r\n')],
      ])('unreachable: the peer %s during the handshake', async (_what, end) => {
        const url = await raw((socket) => socket.once('data', () => end(socket)))
        const fault = await faultOf(exchange(http, ask(url.replace('http:', 'https:'))))
        expect(fault).toMatchObject({ kind: 'unreachable' })
      })

      // With TLS 1.3 the server refuses the client's certificate when the client may have sent its request already.
      // [fault http-4]
      test('reset: the peer refuses us after the request left', async () => {
        setDefaultCACertificates([CERTIFICATE.cert])
        const wants: TlsOptions = { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' }
        const url = await secure(wants, (socket) => socket.end())
        expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'reset' })
      })

      test('unreadable: the peer ends within its answer', async () => {
        setDefaultCACertificates([CERTIFICATE.cert])
        const url = await secure({}, (socket) =>
          socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf')),
        )
        expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'unreadable' })
      })
    })

    test('unreachable: there is no such name', async () => {
      expect(await faultOf(exchange(http, ask('http://no-such-host.invalid/')))).toMatchObject({
        kind: 'unreachable',
      })
    })

    test.each([
      ['no address at all', { url: 'nowhere' }],
      ['a scheme that is none of ours', { url: 'ftp://127.0.0.1/' }],
      ['a header that would smuggle another', { headers: { 'x-a': 'b\r\nhost: c' } }],
    ])('other: %s', async (_what, more) => {
      expect(await faultOf(exchange(http, ask('http://127.0.0.1:9/', more)))).toMatchObject({ kind: 'other' })
    })

    test('unreadable: the peer does not speak HTTP', async () => {
      const url = await raw((socket) => {
        socket.once('data', () => socket.end('SSH-2.0-OpenSSH\r\n'))
      })
      expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'unreadable' })
    })

    test.each([
      ['a header that is none', 'HTTP/1.1 500 no\r\nno header\r\n\r\n'],
      ['a head without end', `HTTP/1.1 500 no\r\nx: ${'x'.repeat(20_000)}\r\ncontent-length: 0\r\n\r\n`],
      ['interim answers without end', 'HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n'.repeat(1000)],
      ['a folded header', 'HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\ncontent-length: 2\r\n\r\nok'],
      ['both lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
      ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
    ])('unreadable: %s', async (_what, answer) => {
      const url = await raw((socket) => {
        socket.once('data', () => socket.write(answer))
      })
      expect(await faultOf(exchange(http, ask(url)))).toMatchObject({ kind: 'unreadable' })
    })

    test.each([
      ['interim answers', 'HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n'],
      ['empty lines', '\r\n'.repeat(100)],
    ])('unreadable: a server that sends %s for ever', async (_what, piece) => {
      const url = await raw((socket) => {
        const send = (): void => {
          if (!socket.destroyed) socket.write(piece, () => setImmediate(send))
        }
        socket.once('data', send)
      })
      expect(await faultOf(exchange(http, ask(url, { timeout: 20_000 })))).toMatchObject({
        kind: 'unreadable',
        message: expect.stringContaining('its interim answers are too long') as string,
      })
    })

    test('one fault does not spoil the exchanges after it', async () => {
      let calls = 0
      const server = await serve((_asked, response) => {
        calls++
        if (calls % 2 === 0) return {}
        response.destroy()
        return null
      })
      const pool = { size: 1 }
      for (let round = 0; round < 5; round++) {
        expect(await faultOf(exchange(http, ask(server.url, { pool })))).toMatchObject({ kind: 'reset' })
        expect((await exchange(http, ask(server.url, { pool }))).status).toBe(200)
      }
    })
  })
})

describe('a stream', () => {
  const open = (url: string, signal = new AbortController().signal, timeout = 5000) =>
    http.open({ url, headers: { accept: 'text/event-stream' }, timeout, signal })

  test('gives chunks as they come and ends when the peer does', async () => {
    const server = await serve((_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('one')
      setImmediate(() => response.end('two'))
      return null
    })
    const stream = await open(server.url)
    expect(stream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    let text = ''
    for await (const chunk of stream.chunks) text += Buffer.from(chunk).toString()
    expect(text).toBe('onetwo')
    await until(() => server.open() === 0)
  })

  const endless: Answerer = (_asked, response) => {
    response.writeHead(200).write('first')
    return null
  }

  test('closes its connection when the reader stops', async () => {
    const server = await serve(endless)
    const { chunks } = await open(server.url)
    for await (const chunk of chunks) {
      expect(Buffer.from(chunk).toString()).toBe('first')
      break
    }
    await until(() => server.open() === 0)
  })

  test('closes its connection when the reader never starts and the signal comes', async () => {
    const server = await serve(endless)
    const abort = new AbortController()
    await open(server.url, abort.signal)
    expect(server.open()).toBe(1)
    abort.abort()
    await until(() => server.open() === 0)
  })

  test('throws an aborted fault at a reader that waits when the signal comes', async () => {
    const server = await serve(endless)
    const abort = new AbortController()
    const { chunks } = await open(server.url, abort.signal)
    const reader = chunks[Symbol.asyncIterator]()
    await reader.next()
    const waiting = faultOf(reader.next())
    abort.abort()
    expect(await waiting).toMatchObject({ kind: 'aborted' })
  })

  test('throws a reset when it is cut', async () => {
    const server = await serve(endless)
    const { chunks } = await open(server.url)
    const reader = chunks[Symbol.asyncIterator]()
    await reader.next()
    const waiting = faultOf(reader.next())
    await server[Symbol.asyncDispose]()
    servers.length = 0
    expect(await waiting).toMatchObject({ kind: 'reset' })
  })

  test('that never answers times out', async () => {
    const server = await serve(() => null)
    const fault = faultOf(open(server.url, undefined, 100))
    expect(await Promise.race([fault, late(100)])).toMatchObject({ kind: 'timeout' })
    await until(() => server.open() === 0)
  })

  test('outlives the timeout of its head', async () => {
    let say: (text: string) => void = () => undefined
    const server = await serve((_asked, response) => {
      response.writeHead(200).write('a')
      say = (text) => response.end(text)
      return null
    })
    const { chunks } = await open(server.url, undefined, 50)
    const reader = chunks[Symbol.asyncIterator]()
    await reader.next()
    const due = performance.now() + 120
    await until(() => performance.now() > due)
    say('b')
    expect(Buffer.from((await reader.next()).value ?? []).toString()).toBe('b')
  })

  test('holds the peer back while there is no reader', async () => {
    let written = 0
    const server = await serve((_asked, response) => {
      response.writeHead(200)
      const more = (): void => {
        while (written < 1e8 && response.write('x'.repeat(65_536))) written += 65_536
        response.once('drain', more)
      }
      more()
      return null
    })
    const abort = new AbortController()
    await open(server.url, abort.signal)
    let before = -1
    const due = performance.now() + 200
    await until(() => performance.now() > due)
    before = written
    const later = performance.now() + 100
    await until(() => performance.now() > later)
    expect(written).toBe(before)
    expect(written).toBeLessThan(1e8)
    abort.abort()
  })
})

describe('closing', () => {
  test('ends what is under way, what waits, and every connection', async () => {
    const own = createHttp()
    const server = await serve((_asked, response) => {
      response.writeHead(200).write('x')
      return null
    })
    const pool = { size: 1 }
    const both = [1, 2].map(() => faultOf(own.exchange(ask(server.url, { pool }))))
    const stream = await own.open({
      url: server.url,
      headers: {},
      timeout: 5000,
      signal: new AbortController().signal,
    })
    await until(() => server.asked.length === 2)
    const reader = stream.chunks[Symbol.asyncIterator]()
    await reader.next()
    const waiting = faultOf(reader.next())
    await own.close()
    expect(await Promise.all([...both, waiting])).toMatchObject([
      { kind: 'aborted' },
      { kind: 'aborted' },
      { kind: 'aborted' },
    ])
    await until(() => server.open() === 0)
    expect(await faultOf(own.exchange(ask(server.url)))).toMatchObject({ kind: 'aborted' })
  })
})
