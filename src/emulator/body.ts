import type { Readable } from 'node:stream'

/** Bytes of the buffer at the start. */
const FIRST = 1024
/** A body may have this many chunks of any size. Its later chunks must have at least this many bytes on average. */
const CHUNKS = 1024
const CHUNK_BYTES = 64

/** The body is not read to its end. `statusCode` is the field that fastify's own refusals have, too. */
class BodyRefused extends Error {
  override readonly name = 'BodyRefused'
  readonly statusCode: 400 | 413

  constructor(statusCode: 400 | 413, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/**
 * Reads a body as text, into one buffer that grows. A body of 1 MB in one-byte chunks would be a million objects if the
 * chunks were kept. `announced`: bytes that its headers give, NaN when they give none.
 * @throws {BodyRefused}
 */
export function readBody(body: Readable, announced: number, limit: number): Promise<string> {
  let bytes = Buffer.alloc(0)
  let length = 0
  let chunks = 0
  return new Promise((resolve, reject) => {
    const refuse = (status: 400 | 413, message: string): void => {
      // The rest is read and discarded, so that a client that is still writing gets the answer.
      body.off('data', take).resume()
      reject(new BodyRefused(status, message))
    }
    const take = (chunk: Buffer): void => {
      const wanted = length + chunk.length
      if (wanted > limit) return refuse(413, 'the body is too long')
      if (++chunks > CHUNKS + length / CHUNK_BYTES)
        return refuse(400, `a body must have chunks of at least ${CHUNK_BYTES} bytes`)
      if (wanted > bytes.length) {
        const grown = Buffer.allocUnsafeSlow(Math.min(limit, Math.max(wanted, bytes.length * 2, FIRST)))
        bytes.copy(grown, 0, 0, length)
        bytes = grown
      }
      chunk.copy(bytes, length)
      length = wanted
    }
    if (announced > limit) return refuse(413, 'the body is too long')
    body.on('data', take)
    body.once('end', () => resolve(bytes.toString('utf8', 0, length)))
    body.once('error', () => refuse(400, 'the body ended too early'))
    body.once('close', () => refuse(400, 'the body ended too early'))
  })
}
