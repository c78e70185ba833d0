import type { Socket } from 'node:net'
import { buildConnector } from 'undici'

/** Length of `HTTP/1.1 100`, and the index of its status. */
const STATUS_END = 12
const STATUS_AT = 9
const [CR, ONE, ZERO, TWO] = Buffer.from('\r102')
const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * A server may send `100 Continue` that no request asked for, and a client must skip it (RFC 9110, section 15.2).
 * The client library undici refuses this one interim answer and skips all others, so our sockets change it to `102`.
 */
export function connectSkippingContinue(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout, allowH2: false })
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[0] === null) skipContinue(result[1])
      callback(...result)
    })
}

/**
 * undici only writes requests, one at a time: the first bytes after a write are the head of an
 * answer.
 */
function skipContinue(socket: Socket): void {
  const read = socket.read.bind(socket)
  const write = socket.write.bind(socket)
  const heads = new Heads()
  Object.assign(socket, {
    read(size?: number): unknown {
      const chunk: unknown = read(size)
      if (chunk instanceof Buffer) heads.rewrite(chunk)
      return chunk
    },
    write(...args: Parameters<Socket['write']>): boolean {
      heads.expect()
      return write(...args)
    },
  })
}

/** Parses the heads of one answer, in chunks of any size. */
class Heads {
  /** Within the first bytes of a head, within the rest of an interim one, or behind the last head. */
  #state: 'status' | 'interim' | 'body' = 'body'
  readonly #line = Buffer.alloc(STATUS_END)
  /** Bytes of `#line` that were read; bytes of `HEAD_END` that the last ones are. */
  #read = 0

  expect(): void {
    if (this.#state === 'body') this.#enter('status')
  }

  rewrite(chunk: Buffer): void {
    // Nearly every answer ends this at its twelfth byte.
    for (let at = 0; at < chunk.length && this.#state !== 'body'; at++) {
      if (this.#state === 'status') this.#readStatus(chunk, at)
      else this.#skip(chunk[at])
    }
  }

  #readStatus(chunk: Buffer, at: number): void {
    this.#line[this.#read++] = chunk.readUInt8(at)
    if (this.#read < STATUS_END) return
    const [first, second, third] = this.#line.subarray(STATUS_AT)
    if (first === ONE && second === ZERO && third === ZERO) chunk.writeUInt8(TWO ?? 0, at)
    this.#enter(first === ONE ? 'interim' : 'body')
  }

  #skip(byte: number | undefined): void {
    if (byte === HEAD_END[this.#read]) this.#read++
    else this.#read = byte === CR ? 1 : 0
    if (this.#read === HEAD_END.length) this.#enter('status')
  }

  #enter(state: 'status' | 'interim' | 'body'): void {
    this.#state = state
    this.#read = 0
  }
}
