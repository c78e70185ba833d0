import type { NetworkFault } from './errors.ts'

/**
 * The ports of the machine. Time, randomness and the network reach the core through these alone, which lets a simulation
 * crash it thousands of times a minute.
 */

export interface Clock {
  /** Wall clock, milliseconds since the epoch. For what people and other programs read. */
  now(): number
  /**
   * Milliseconds since the epoch as of the start of the process, counted on from there by the monotonic clock. For
   * waiting, leases and back-off: a jump of the wall clock does not move it.
   */
  steady(): number
  /** Calls `run` once after `ms` unless cancelled. */
  after(ms: number, run: () => void): Timer
  /** Calls `run` as soon as what is under way in this tick is done. */
  soon(run: () => void): void
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
 * Connections that a caller shares with no other, whatever the address: what waits for long would hold up the others.
 * Callers that hand in the same object share them.
 */
export interface HttpPool {
  /** Connections to one origin, at most. */
  size: number
  /**
   * A connection for each exchange. One that is kept may be closed by the other side just as something is sent, and nobody
   * can tell whether it arrived.
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
  /** Bytes of the answer that are read; what comes after is cut off. */
  maxBody: number
  /** Default: one for all that name none, of 32 connections. */
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
  /** The body as it comes. Ends when the peer closes cleanly; throws a NetworkFault on anything else. */
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
   * As `exchange`, for what is sent thousands of times a second: `settled` is called once, after `send` has returned, and
   * there is no promise. What it needs of `request.body` it takes before it returns. `request.signal` is not used.
   */
  send(request: HttpRequest, settled: (outcome: HttpReply | NetworkFault) => void): HttpAttempt
  open(request: HttpStreamRequest): Promise<HttpStream>
  close(): Promise<void>
}

/** Structured log, as pino has it. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
  child(bindings: object): Log
}
