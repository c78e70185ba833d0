import { NetworkFault } from '../std/errors.ts'
import type { Http, HttpPool, HttpReply, HttpRequest } from '../std/ports.ts'
import { Sender } from './sender.ts'
import { openStream } from './stream.ts'

export interface HttpOptions {
  /** Milliseconds for opening a connection; the timeout of an exchange may be shorter. Default 10 s. */
  connectTimeout?: number
  /** Bytes of an answer's head, all headers together. Default 16 KiB, as in Node. */
  maxHeaderSize?: number
}

/** The pool of requests that name none. */
const COMMON: HttpPool = { size: 32 }

/**
 * HTTP/1.1. `exchange` and `send` use connections of our own (sender.ts), which are kept alive, and limited for each
 * pool and origin. `open` uses one more connection for each stream.
 */
export function createHttp(options: HttpOptions = {}): Http {
  const { connectTimeout = 10_000, maxHeaderSize = 16_384 } = options
  const sender = new Sender({ connectTimeout, maxHeaderSize })
  const streams = new Set<(fault: NetworkFault) => void>()
  let closed = false

  function exchange(request: HttpRequest): Promise<HttpReply> {
    const { signal } = request
    return new Promise<HttpReply>((resolve, reject) => {
      if (signal?.aborted === true) throw new NetworkFault('aborted', 'aborted by the caller')
      const attempt = sender.send(request, request.pool ?? COMMON, (outcome) => {
        signal?.removeEventListener('abort', abort)
        if (outcome instanceof NetworkFault) reject(outcome)
        else resolve(outcome)
      })
      const abort = (): void => attempt.abort()
      signal?.addEventListener('abort', abort)
    })
  }

  return {
    exchange,
    send: (request, settled) => sender.send(request, request.pool ?? COMMON, settled),
    async open(request) {
      if (closed) throw new NetworkFault('aborted', 'closed')
      return openStream(request, { connectTimeout, maxHeaderSize }, streams)
    },
    async close() {
      closed = true
      sender.close()
      for (const end of streams) end(new NetworkFault('aborted', 'closed'))
    },
  }
}
