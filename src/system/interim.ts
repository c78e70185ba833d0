import type { Socket } from 'node:net'
import { buildConnector } from 'undici'

/** Where the three digits of the status begin in `HTTP/1.1 100 Continue`. */
const STATUS_AT = 9
const [H, ONE, ZERO, TWO] = Buffer.from('H102')
const HEAD_END = '\r\n\r\n'

/**
 * A server may send `100 Continue` though the request did not ask for it, and a client must be able to skip it (RFC 9110,
 * 15.2). undici skips every interim answer but this one, which it takes for a violation. So its sockets read it as `102`.
 */
export function connectSkippingContinue(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout, allowH2: false })
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[0] === null) skipContinue(result[1])
      callback(...result)
    })
}

/** undici writes nothing but requests, one at a time: what it reads first after a write is the head of an answer. */
function skipContinue(socket: Socket): void {
  const read = socket.read.bind(socket)
  const write = socket.write.bind(socket)
  let headNext = false
  Object.assign(socket, {
    read(size?: number): unknown {
      const chunk: unknown = read(size)
      if (headNext && chunk instanceof Buffer) headNext = rewriteContinue(chunk)
      return chunk
    },
    write(...args: Parameters<Socket['write']>): boolean {
      headNext = true
      return write(...args)
    },
  })
}

/** @returns whether another head comes next. */
function rewriteContinue(chunk: Buffer): boolean {
  let at = 0
  while (isContinue(chunk, at)) {
    chunk.writeUInt8(TWO ?? 0, at + STATUS_AT + 2)
    const end = chunk.indexOf(HEAD_END, at)
    // The rest of the head comes with the next piece, and then the answer.
    if (end === -1) return false
    at = end + HEAD_END.length
  }
  return at > 0 && at === chunk.length
}

function isContinue(chunk: Buffer, at: number): boolean {
  const status = at + STATUS_AT
  // Nearly every answer has a 2 there.
  return chunk[status] === ONE && chunk[status + 1] === ZERO && chunk[status + 2] === ZERO && chunk[at] === H
}
