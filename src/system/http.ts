import type { Client } from 'undici'
import { NetworkFault } from '../std/errors.ts'
import type { Http, HttpPool, HttpReply, HttpRequest } from '../std/ports.ts'
import { Connections } from './connections.ts'
import { Exchange } from './exchange.ts'
import { networkFault } from './fault.ts'
import { connectSkippingContinue } from './interim.ts'
import { Sender } from './sender.ts'
import { openStream } from './stream.ts'

export interface HttpOptions {
  /** Milliseconds for opening a connection; an exchange's own timeout may be shorter. Default 10 s. */
  connectTimeout?: number
  /** Bytes of an answer's head, all headers together. Default 16 KiB, as Node's own. */
  maxHeaderSize?: number
}

/** For a request that names no pool. */
const COMMON: HttpPool = { size: 32 }
/** Addresses of one pool whose parsed form is cached, because handlers and tools are few. */
const TARGETS_KEPT = 1024

interface Target {
  connections: Connections
  path: string
}

/** The content of one pool. */
interface Pooled {
  origins: Map<string, Connections>
  targets: Map<string, Target>
}

/**
 * HTTP/1.1: `exchange` and `open` on undici, `send` on connections of our own (sender.ts).
 * Connections are kept alive, and bounded for each pool and origin. Both are kept for ever, because
 * they come from the configuration.
 */
export function undiciHttp(options: HttpOptions = {}): Http {
  const { connectTimeout = 10_000, maxHeaderSize = 16_384 } = options
  const sender = new Sender({ connectTimeout, maxHeaderSize })
  const client: Client.Options = {
    connect: connectSkippingContinue(connectTimeout),
    maxHeaderSize,
    // Each exchange has its own timer, and the reader of a stream monitors it.
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  }
  const pools = new Map<HttpPool, Pooled>()
  const streams = new Set<Client>()
  let closed = false

  function pooled(pool: HttpPool): Pooled {
    let found = pools.get(pool)
    if (found === undefined) pools.set(pool, (found = { origins: new Map(), targets: new Map() }))
    return found
  }

  function targetOf(url: string, pool: HttpPool): Target {
    const { origins, targets } = pooled(pool)
    let target = targets.get(url)
    if (target !== undefined) return target
    const { origin, pathname, search } = new URL(url)
    let connections = origins.get(origin)
    if (connections === undefined) {
      connections = new Connections(origin, pool.size, client)
      origins.set(origin, connections)
    }
    target = { connections, path: pathname + search }
    if (targets.size >= TARGETS_KEPT) targets.clear()
    targets.set(url, target)
    return target
  }

  function begin(request: HttpRequest, settled: (outcome: HttpReply | NetworkFault) => void): Exchange {
    if (closed) throw new NetworkFault('aborted', 'closed')
    const { connections, path } = targetOf(request.url, request.pool ?? COMMON)
    const attempt = new Exchange(request, path, connections, settled)
    attempt.begin()
    return attempt
  }

  function exchange(request: HttpRequest): Promise<HttpReply> {
    const { signal } = request
    return new Promise<HttpReply>((resolve, reject) => {
      if (signal?.aborted === true) throw new NetworkFault('aborted', 'aborted by the caller')
      const attempt = begin(request, (outcome) => {
        signal?.removeEventListener('abort', abort)
        if (outcome instanceof NetworkFault) reject(outcome)
        else resolve(outcome)
      })
      const abort = (): void => attempt.abort()
      signal?.addEventListener('abort', abort)
    }).catch((error: unknown) => {
      throw networkFault(error, 'connecting')
    })
  }

  return {
    exchange,
    send: (request, settled) => sender.send(request, request.pool ?? COMMON, settled),
    async open(request) {
      if (closed) throw new NetworkFault('aborted', 'closed')
      return openStream(request, client, streams)
    },
    async close() {
      closed = true
      sender.close()
      const open = [...streams]
      streams.clear()
      await Promise.all([
        ...[...pools.values()].flatMap(({ origins }) =>
          Array.from(origins.values(), (connections) => connections.destroy()),
        ),
        ...open.map((stream) => stream.destroy(new NetworkFault('aborted', 'closed'))),
      ])
    },
  }
}
