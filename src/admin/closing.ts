import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Milliseconds that a request which has begun may still take. */
const GRACE = 5_000

/**
 * Makes a listener one that closes in time, whatever its peers do: a server of Node waits for every connection that never
 * asked for anything, and once it closes it looks for overdue ones no more.
 * @returns closes it: what is under way ends, within 5 s; connections that ask for nothing are cut at once.
 */
export function closingInTime(app: FastifyInstance): () => Promise<void> {
  const server: Server = app.server
  /** Requests under way, by connection. */
  const connections = new Map<Socket, number>()
  let closing = false
  const change = (socket: Socket, by: number): void => {
    const requests = (connections.get(socket) ?? 0) + by
    if (closing && requests === 0) socket.destroySoon()
    else if (!socket.destroyed) connections.set(socket, requests)
  }
  server.on('connection', (socket) => {
    socket.once('close', () => connections.delete(socket))
    change(socket, 0)
  })
  server.on('request', ({ socket }, response) => {
    change(socket, 1)
    response.once('close', () => change(socket, -1))
  })
  return async () => {
    closing = true
    for (const [socket, requests] of connections) if (requests === 0) socket.destroySoon()
    const late = setTimeout(() => server.closeAllConnections(), GRACE)
    try {
      await app.close()
    } finally {
      clearTimeout(late)
    }
  }
}
