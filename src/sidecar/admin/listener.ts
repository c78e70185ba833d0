import { lookup } from 'node:dns/promises'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** An HTTP listener that can be started and stopped. */
export interface Listener {
  /** @returns where it listens: the port that the system chose, if 0 was asked for. */
  listen(): Promise<{ host: string; port: number }>
  /** Takes nothing new, lets what is under way end. */
  close(): Promise<void>
}

/** The clock of the throttled logs of listeners. */
export const STEADY = { steady: () => performance.now() }

/** Milliseconds between looks for connections that overstayed their time: Node's 30 s would double the limits. */
export const CHECKED_EVERY = 2_000

export async function open(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<{ host: string; port: number }> {
  // For `localhost` fastify opens a second server, on which none of what limits the first one is set.
  await app.listen({ host: host === 'localhost' ? (await lookup(host)).address : host, port })
  const [first] = addressesOf(app)
  return first ?? { host, port }
}

export function addressesOf(app: FastifyInstance): { host: string; port: number }[] {
  return app
    .addresses()
    .flatMap((address) =>
      typeof address === 'string' ? [] : [{ host: address.address, port: address.port }],
    )
}

/** What an answer says to what was not even HTTP, or came too slowly; nobody knows what was asked for. */
export type Refusal = (status: 400 | 408 | 431) => { type: string; text: string }

const STATUSES: Readonly<Record<string, 408 | 431>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Milliseconds for a peer to read why it was refused. */
const LINGER = 1_000

/** Answers a connection that brought no request. */
export function refuseConnection(error: { code?: string }, socket: Socket, refusal?: Refusal): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const status = STATUSES[error.code ?? ''] ?? 400
  const { type, text } = refusal?.(status) ?? { type: null, text: '' }
  const contentType = type === null ? '' : `Content-Type: ${type}\r\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${contentType}`
  socket.end(`${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  // A peer that never closes its own half would keep the connection, and its place, for ever.
  const late = setTimeout(() => socket.destroy(), LINGER)
  socket.once('close', () => clearTimeout(late))
}
