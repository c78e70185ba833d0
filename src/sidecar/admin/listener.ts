import { once } from 'node:events'
import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { keepConnections, type ConnectionOptions } from './connections.ts'

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
  /** Milliseconds until the headers and the whole request are complete, and of silence on a connection. */
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
      // Node takes the longer of the two times for that of the whole request: the first must be the shorter.
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
