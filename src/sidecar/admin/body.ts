import { IncomingMessage } from 'node:http'
import { ByteBuffer } from '../../std/byte-buffer.ts'

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
 * Gives its body to its reader as it comes, and discards it when no reader is set. As a stream of Node's it would queue each
 * chunk and emit six events, which takes longer than the signature of a webhook.
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

  /** It never pauses. */
  override resume(): this {
    return this
  }
}

/** `limit`: bytes, the announced ones where there are any. */
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
