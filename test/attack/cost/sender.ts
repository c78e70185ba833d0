import { once } from 'node:events'
import { connect } from 'node:net'

/** How a peer cuts a body into pieces. */
export interface Chunking {
  name: string
  /** Of the request's head. */
  headers: (bytes: number) => string
  /** Nanoseconds that a byte may cost the event loop of the one who reads it. */
  bound: number
  /**
   * Mebibytes that a hundred bodies may cost; 40 when left out, infinite when too little is sent
   * for a measurement.
   */
  memory?: number
  /** The body ends before its announced length: the connection is closed after the last piece. */
  cut?: true
  /** What is written for `bytes` bytes of body, piece by piece. */
  pieces: (bytes: number) => Iterable<Buffer>
}

/** Bytes of one write: what a socket takes at once. */
const WRITE = 64 * 1024

function* chunked(bytes: number, size: number): Iterable<Buffer> {
  const frame = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  const together = Math.max(1, Math.floor(WRITE / frame.length))
  const piece = Buffer.from(frame.repeat(together))
  for (let sent = 0; sent < bytes; sent += size * together) yield piece
  yield Buffer.from('0\r\n\r\n')
}

function* plain(bytes: number, size: number): Iterable<Buffer> {
  const piece = Buffer.alloc(size, 120)
  for (let sent = 0; sent < bytes; sent += size) yield piece.subarray(0, Math.min(size, bytes - sent))
}

const CHUNKED = (): string => 'transfer-encoding: chunked\r\n'
const ANNOUNCED = (bytes: number): string => `content-length: ${bytes}\r\n`

export const CHUNKINGS: readonly Chunking[] = [
  { name: 'whole', headers: ANNOUNCED, bound: 200, pieces: (bytes) => plain(bytes, WRITE) },
  {
    name: 'packets of 10 bytes',
    headers: ANNOUNCED,
    bound: 5000,
    // 4,000 bytes of each body: what a server keeps of 400 packets does not stand out from the noise.
    memory: Infinity,
    cut: true,
    pieces: (bytes) => plain(bytes / 250, 10),
  },
  { name: 'chunks of 16 KiB', headers: CHUNKED, bound: 200, pieces: (bytes) => chunked(bytes, 16 * 1024) },
  { name: 'chunks of 100 bytes', headers: CHUNKED, bound: 200, pieces: (bytes) => chunked(bytes, 100) },
  { name: 'chunks of 1 byte', headers: CHUNKED, bound: 200, pieces: (bytes) => chunked(bytes, 1) },
]

/** Writes a request until it is answered, cut, or through. @returns the bytes that were sent. */
export async function sendBody(
  port: number,
  head: string,
  pieces: Iterable<Buffer>,
  { cut = false }: { cut?: boolean } = {},
): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let ended = false
  const end = new Promise<void>((resolve) => {
    const over = (): void => {
      ended = true
      resolve()
    }
    socket.on('error', over).on('close', over).on('end', over).on('data', over)
  })
  socket.write(head)
  for (const piece of pieces) {
    if (ended) break
    // One write after the other, so that each is a packet of its own.
    await Promise.race([new Promise<void>((resolve) => void socket.write(piece, () => resolve())), end])
  }
  // Without this, the server would wait for the rest until its time-out.
  if (cut && !ended) socket.end()
  await Promise.race([end, once(socket, 'close')])
  const { bytesWritten } = socket
  socket.destroy()
  return bytesWritten
}
