import { messageOf, NetworkFault } from '../../src/std/errors.ts'
import { fanOut, type Observer } from '../../src/core/observer.ts'
import type { Http, HttpReply, HttpRequest, Log, Random } from '../../src/std/ports.ts'

/** Chance that can be repeated (mulberry32). */
export function seededRandom(seed = 1): Random {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    hex: (bytes) => Array.from({ length: bytes * 2 }, () => Math.floor(next() * 16).toString(16)).join(''),
  }
}

/** Always the longest wait that jitter allows, so that waits are known to the millisecond. */
export const longestWaits: Random = { next: () => 1, hex: (bytes) => 'ab'.repeat(bytes) }

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error'
  message: string
  details: Record<string, unknown>
}

/** A log that keeps its lines. */
export function keepingLog(): Log & { lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = (bindings: object): Log => {
    const at = (level: LogLine['level']) => (details: object, message: string) =>
      void lines.push({ level, message, details: { ...bindings, ...details } })
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (more) => log({ ...bindings, ...more }),
    }
  }
  return { ...log({}), lines }
}

export const deafObserver: Observer = fanOut([])

/** The port's `send` for a network that has `exchange`. */
export function sendThrough(exchange: Http['exchange']): Http['send'] {
  return (request, settled) => {
    const controller = new AbortController()
    // The sender reuses the bytes of its body.
    const body = request.body instanceof Buffer ? { body: Buffer.from(request.body) } : {}
    exchange({ ...request, ...body, signal: controller.signal }).then(settled, (error: unknown) =>
      settled(error instanceof NetworkFault ? error : new NetworkFault('other', messageOf(error))),
    )
    return { abort: () => controller.abort() }
  }
}

/** A network of one answer: keeps what was asked of it. */
export function fakeHttp(reply: (request: HttpRequest) => HttpReply | Promise<HttpReply>) {
  const requests: HttpRequest[] = []
  const exchange = async (request: HttpRequest): Promise<HttpReply> => {
    requests.push(request)
    return await reply(request)
  }
  const http: Http = {
    exchange,
    send: sendThrough(exchange),
    open: () => Promise.reject(new Error('nothing is streamed here')),
    close: () => Promise.resolve(),
  }
  return { http, requests }
}

export function answer(status: number, body = '', headers: Record<string, string> = {}): HttpReply {
  return { status, headers, body, truncated: false }
}
