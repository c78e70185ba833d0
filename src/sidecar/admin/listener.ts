import { lookup } from 'node:dns/promises'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** An HTTP listener that can be started and stopped. */
export interface Listener {
  /** @returns its address, with the port that the system chose for port 0. */
  listen(): Promise<{ host: string; port: number }>
  /** Accepts no new requests, and waits for those under way. */
  close(): Promise<void>
}

/** The clock of the throttled logs of listeners. */
export const STEADY = { steady: () => performance.now() }

/**
 * Milliseconds between checks for connections over their time limit: Node's default of 30 s would double the limits.
 */
export const CHECKED_EVERY = 2_000

export async function open(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<{ host: string; port: number }> {
  // For `localhost` fastify opens a second server, without the limits of the first one.
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

/** The answer to a request that was not HTTP, or came too slowly; its path is unknown. */
export type Refusal = (status: 400 | 408 | 431) => { type: string; text: string }

const STATUSES: Readonly<Record<string, 408 | 431>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Milliseconds for a peer to read the refusal. */
const LINGER = 1_000

/** Answers a connection without a valid request. */
export function refuseConnection(error: { code?: string }, socket: Socket, refusal?: Refusal): void {
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
