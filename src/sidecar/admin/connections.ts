import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'

/** Milliseconds for a request under way after the listener closes. */
const GRACE = 5_000

export interface ConnectionOptions {
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
  /** Number in the order of events: when its last request was answered, or when it opened. */
  since: number
  wasAnswered: boolean
}

/**
 * Limits the connections of a listener. 256 sockets that never send a request must not block the 257th. When all are in
 * use, the one that is idle for longest is closed, of the peer address with the most connections. There is no limit for
 * each peer, because behind an ingress all peers have one address.
 * @returns closes the listener: requests under way end within 5 s; connections without a request are cut at once.
 */
export function keepConnections(server: Server, options: ConnectionOptions): () => Promise<void> {
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
