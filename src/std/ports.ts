import type { NetworkFault } from './errors.ts'

/**
 * The ports of the machine. The core gets time, randomness and the network only through these, so a
 * simulation can crash it thousands of times a minute.
 */

export interface Clock {
  /** Wall clock, milliseconds since the epoch. For output to people and other programs. */
  now(): number
  /**
   * Milliseconds since the epoch as of the start of the process, counted on from there by the monotonic clock. For
   * waiting, leases and back-off: a jump of the wall clock does not move it.
   */
  steady(): number
  /** Calls `run` once after `ms` unless cancelled. */
  after(ms: number, run: () => void): Timer
  /** Calls `run` after the current tick. `same`: before the event loop handles further sockets and timers. */
  soon(run: () => void, turn?: 'same' | 'next'): void
}

export interface Timer {
  cancel(): void
}

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** `bytes` random bytes as lower-case hex. */
  hex(bytes: number): string
}

/**
 * A separate pool of connections, so that long waits of one caller do not delay others. Callers
 * that pass the same object share the pool.
 */
export interface HttpPool {
  /** Connections to one origin, at most. */
  size: number
  /**
   * A new connection for each exchange. The peer may close a kept-alive connection just as a
   * request is sent, and then it is unknown whether the request arrived.
   */
  fresh?: boolean
}

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  url: string
  headers: Record<string, string>
  body?: string | Buffer
  /** Milliseconds for the whole exchange, connecting included. */
  timeout: number
  /** Bytes of the answer that are read; the rest is discarded. */
  maxBody: number
  /** Default: a common pool of 32 connections. */
  pool?: HttpPool
  signal?: AbortSignal
}

export interface HttpReply {
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
  /** True when the answer was longer than `maxBody`. */
  truncated: boolean
}

export interface HttpStreamRequest {
  url: string
  headers: Record<string, string>
  /** Milliseconds to wait for the answer's head. */
  timeout: number
  signal: AbortSignal
}

export interface HttpStream {
  status: number
  headers: Record<string, string>
  /** The body in the received chunks. Ends when the peer closes cleanly; throws a NetworkFault on anything else. */
  chunks: AsyncIterable<Uint8Array>
}

/** A request that was begun. */
export interface HttpAttempt {
  /** Ends it with a fault of kind `aborted`, unless it has ended. */
  abort(): void
}

/** Redirects are never followed. Every failure is a NetworkFault. */
export interface Http {
  exchange(request: HttpRequest): Promise<HttpReply>
  /**
   * Like `exchange`, for thousands of requests a second: it calls `settled` once, after `send` has returned, instead
   * of making a promise. `request.body` may be reused as soon as `send` returns. `request.signal` is not used.
   */
  send(request: HttpRequest, settled: (outcome: HttpReply | NetworkFault) => void): HttpAttempt
  open(request: HttpStreamRequest): Promise<HttpStream>
  close(): Promise<void>
}

/** Structured log, with the interface of pino. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
  child(bindings: object): Log
}
