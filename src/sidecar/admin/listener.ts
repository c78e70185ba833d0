import { once } from 'node:events'
import { createServer, IncomingMessage, STATUS_CODES, type Server, type ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { ByteBuffer } from '../../std/byte-buffer.ts'

export interface Address {
  host: string
  port: number
}

/** An HTTP listener that can be started and stopped. */
export interface Listener {
  /** @returns its address, with the port that the system chose for port 0. */
  listen(): Promise<Address>
  /** Accepts no new requests, and waits for those under way. */
  close(): Promise<void>
}

/** The clock of the throttled logs of listeners. */
export const STEADY = { steady: () => performance.now() }

/**
 * Milliseconds between checks for connections over their time limit: Node's default of 30 s would double the limits.
 */
const CHECKED_EVERY = 2_000

export interface ListenerOptions<Request extends typeof IncomingMessage> {
  listen: Address
  /** Bytes of all headers of a request. */
  headers: number
  /**
   * Milliseconds: until the headers are complete, until the whole request is, and of silence after which a connection
   * is closed.
   */
  times: { headers: number; request: number; idle: number; checkedEvery?: number }
  connections: ConnectionOptions
  refusal?: Refusal
  /** The class of requests; without one it is Node's. */
  IncomingMessage?: Request
  serve: (request: InstanceType<Request>, response: ServerResponse) => void
}

export function createListener<Request extends typeof IncomingMessage>(
  options: ListenerOptions<Request>,
): Listener {
  const { headers, times, connections, refusal } = options
  const server = createServer(
    {
      ...(options.IncomingMessage === undefined ? {} : { IncomingMessage: options.IncomingMessage }),
      maxHeaderSize: headers,
      // Node throws if `headersTimeout` is longer than `requestTimeout`.
      headersTimeout: times.headers,
      requestTimeout: times.request,
      connectionsCheckingInterval: times.checkedEvery ?? CHECKED_EVERY,
      keepAliveTimeout: times.idle,
    },
    options.serve,
  )
  server.setTimeout(times.idle)
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) =>
    refuseConnection(error, socket, refusal),
  )
  const close = keepConnections(server, connections)
  return {
    async listen() {
      server.listen(options.listen)
      await once(server, 'listening')
      const address = server.address()
      if (address === null || typeof address === 'string') return options.listen
      return { host: address.address, port: address.port }
    },
    close,
  }
}

/** The answer to a request that was not HTTP, or came too slowly; its path is unknown. */
export type Refusal = (status: 400 | 408 | 431) => { type: string; text: string }

const STATUSES: Readonly<Record<string, 408 | 431>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Milliseconds for a peer to read the refusal. */
const LINGER = 1_000

/** Answers a connection without a valid request. */
function refuseConnection(error: { code?: string }, socket: Socket, refusal?: Refusal): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const status = STATUSES[error.code ?? ''] ?? 400
  const { type, text } = refusal?.(status) ?? { type: null, text: '' }
  const contentType = type === null ? '' : `Content-Type: ${type}\r\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${contentType}`
  socket.end(`${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  // A peer that never closes its own half would keep the connection, and its slot, for ever.
  const late = setTimeout(() => socket.destroy(), LINGER)
  socket.once('close', () => clearTimeout(late))
}

/** Milliseconds for a request under way after the listener closes. */
const GRACE = 5_000

interface ConnectionOptions {
  /** Connections at once. */
  limit: number
  /** All were in use: one was closed to make room for a new one. */
  onEvicted: () => void
  /** All were in use and every one was being served: the new one was closed. */
  onRefused: () => void
}

interface Connection {
  peer: string
  /** Requests under way: begun and not completely answered. */
  requests: Map<ServerResponse, IncomingMessage>
  /** The number of its last event: its last request was answered, or it opened. A lower number is longer ago. */
  since: number
  wasAnswered: boolean
}

/**
 * Limits the connections of a listener. 256 sockets that never send a request must not block the 257th. When all are in
 * use, of the peer address with the most connections, the one that has been idle for longest is closed. There is no
 * limit for each peer, because behind an ingress all peers have one address.
 * @returns closes the listener: requests under way end within 5 s; connections without a request are cut at once.
 */
function keepConnections(server: Server, options: ConnectionOptions): () => Promise<void> {
  const connections = new Map<Socket, Connection>()
  let events = 0
  let closing = false

  /** One function for all responses: a closure for each would live as long as its request. */
  function onClosed(this: ServerResponse): void {
    const { req } = this
    const connection = connections.get(req.socket)
    if (connection === undefined) return
    connection.requests.delete(this)
    if (req.complete) {
      connection.since = ++events
      connection.wasAnswered = true
    }
    if (closing && connection.requests.size === 0) req.socket.destroySoon()
  }

  server.on('connection', (socket) => {
    if (connections.size >= options.limit) {
      const victim = victimOf(connections)
      if (victim === null) {
        options.onRefused()
        socket.destroy()
        return
      }
      options.onEvicted()
      connections.delete(victim)
      victim.destroy()
    }
    const peer = peerOf(socket.remoteAddress ?? '')
    connections.set(socket, { peer, requests: new Map(), since: ++events, wasAnswered: false })
    socket.once('close', () => connections.delete(socket))
    if (closing) socket.destroySoon()
  })
  server.on('request', (request, response) => {
    const connection = connections.get(request.socket)
    if (connection === undefined) return
    connection.requests.set(response, request)
    response.on('close', onClosed)
  })
  return async () => {
    closing = true
    for (const [socket, { requests }] of connections) if (requests.size === 0) socket.destroySoon()
    const late = setTimeout(() => server.closeAllConnections(), GRACE)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(late)
  }
}

/** The connection to close; null when every one is being served. */
function victimOf(connections: ReadonlyMap<Socket, Connection>): Socket | null {
  const perPeer = new Map<string, number>()
  for (const { peer } of connections.values()) perPeer.set(peer, (perPeer.get(peer) ?? 0) + 1)
  let victim: { socket: Socket; connection: Connection; busy: number } | null = null
  for (const [socket, connection] of connections) {
    if (isServed(connection)) continue
    const busy = perPeer.get(connection.peer) ?? 0
    if (
      victim === null ||
      busy > victim.busy ||
      (busy === victim.busy && isLonger(connection, victim.connection))
    )
      victim = { socket, connection, busy }
  }
  return victim?.socket ?? null
}

/**
 * Whether a request is complete and its answer is not made yet. A connection that still sends its
 * body, or does not read its answer, is not served.
 */
function isServed({ requests }: Connection): boolean {
  for (const [response, request] of requests) if (request.complete && !response.writableEnded) return true
  return false
}

/**
 * Whether `one` has been without a complete request for longer than `other`; a connection that
 * never sent one counts as longest.
 */
function isLonger(one: Connection, other: Connection): boolean {
  return one.wasAnswered === other.wasAnswered ? one.since < other.since : !one.wasAnswered
}

/**
 * The key of one peer: an IPv4 address, or the /64 of an IPv6 address, since one customer owns all
 * of it.
 */
export function peerOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0')
  return [...first, ...zeros, ...last].slice(0, 4).join(':')
}

/** Bytes of a body that every connection may send; the number of connections limits the sum. */
const SMALL = 64 * 1024
/** The number of chunks that are always allowed, and the average bytes of each further chunk. */
const CHUNKS = 1024
const CHUNK_BYTES = 64

/**
 * A body that is not read to its end. The connection must close, because the rest may still arrive.
 */
export class BodyRefused extends Error {
  readonly statusCode: 400 | 413 | 503

  constructor(statusCode: 400 | 413 | 503, message: string) {
    super(message)
    this.name = 'BodyRefused'
    this.statusCode = statusCode
  }
}

export type BodyDone = (error: BodyRefused | null, body?: Buffer) => void

/**
 * Reads the bodies of one listener in bounded memory. A body of up to 64 KiB only needs its
 * connection. A longer one must announce its length, and all longer ones together share `shared`
 * bytes.
 */
export class BodyReader {
  #free: number

  constructor(shared: number) {
    this.#free = shared
  }

  /**
   * The reason to refuse a body by its headers alone; null when it may be read. `limit`: bytes of
   * the body.
   */
  refusalOf(request: IncomingMessage, limit: number): BodyRefused | null {
    const announced = announcedBytes(request)
    if (announced > limit) return new BodyRefused(413, `a body has at most ${limit} bytes`)
    if (announced > SMALL && announced > this.#free)
      return new BodyRefused(503, 'too many long bodies are being read')
    return null
  }

  /** `done` gets the body, or why it was not read to its end. */
  read(request: IncomingMessage, limit: number, done: BodyDone): void {
    const refusal = this.refusalOf(request, limit)
    if (refusal !== null) return done(refusal)
    const announced = announcedBytes(request)
    const share = announced > SMALL ? announced : 0
    this.#free -= share
    collect(request, announced === 0 ? Math.min(limit, SMALL) : announced, (error, body) => {
      this.#free += share
      done(error, body)
    })
  }
}

/** 0 when the length is unknown. */
function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0)
}

/** Takes a body piece by piece; null: it is complete. */
type Taker = (chunk: Buffer | null) => void

/**
 * A webhook's body goes to its reader as it arrives, and is discarded while there is no reader. As a stream of Node's,
 * the request would queue each chunk and emit six events, which takes longer than checking the signature.
 */
export class DirectRequest extends IncomingMessage {
  #taker: Taker | null = null

  giveTo(taker: Taker | null): void {
    this.#taker = taker
  }

  override push(chunk: unknown): boolean {
    if (chunk === null || Buffer.isBuffer(chunk)) this.#taker?.(chunk)
    return true
  }

  /** Node resumes a stream that paused; this request never pauses. */
  override resume(): this {
    return this
  }
}

/** `limit`: the most bytes of the body, or its announced length. */
function collect(request: IncomingMessage, limit: number, done: BodyDone): void {
  const buffer = new ByteBuffer(limit, announcedBytes(request))
  let chunks = 0
  let isDone = false
  const end = (error: BodyRefused | null, body?: Buffer): void => {
    if (isDone) return
    isDone = true
    // The request keeps flowing, so that data before the close of the connection is discarded.
    give(request, null)
    // An idle connection keeps its last request, which must not keep the body.
    request.off('close', cut)
    done(error, body)
  }
  const cut = (): void => end(new BodyRefused(400, 'the body ended too early'))
  give(request, (chunk) => {
    if (chunk === null) return end(null, buffer.bytes())
    if (buffer.length + chunk.length > limit)
      return end(new BodyRefused(413, `a body without a content-length has at most ${limit} bytes`))
    if (++chunks > CHUNKS + buffer.length / CHUNK_BYTES)
      return end(new BodyRefused(400, `a body must have chunks of at least ${CHUNK_BYTES} bytes`))
    buffer.append(chunk)
  })
  request.on('close', cut)
}

/** Gives the body of `request` to a reader, or discards the rest of it. */
function give(request: IncomingMessage, taker: Taker | null): void {
  if (request instanceof DirectRequest) return request.giveTo(taker)
  request.removeAllListeners('data').removeAllListeners('end').resume()
  if (taker !== null) request.on('data', taker).on('end', () => taker(null))
}

/** Whether the headers announce a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
