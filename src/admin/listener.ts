import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** An HTTP listener that can be started and stopped. */
export interface Listener {
  /** @returns where it listens: the port that the system chose, if 0 was asked for. */
  listen(): Promise<{ host: string; port: number }>
  /** Takes nothing new, lets what is under way end. */
  close(): Promise<void>
}

/** Milliseconds between looks for connections that overstayed their time: Node's 30 s would double the limits. */
export const CHECKED_EVERY = 2_000

export async function open(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<{ host: string; port: number }> {
  await app.listen({ host, port })
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

const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Answers what was not even HTTP, or came too slowly. */
export function refuseConnection(error: { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const reason = REASONS[error.code ?? ''] ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}
