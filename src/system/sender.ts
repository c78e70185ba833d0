import { lookup as resolve } from 'node:dns'
import { connect as connectPlain, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { BoundedMap } from '../std/bounded-map.ts'
import { STALLED } from './clock.ts'
import { NetworkFault } from '../std/errors.ts'
import type { HttpAttempt, HttpPool, HttpReply, HttpRequest } from '../std/ports.ts'
import { AnswerParser } from './answer-parser.ts'
import { networkFault, type Stage } from './fault.ts'
import { createLookup } from './lookup.ts'

export interface SenderOptions {
  /** Milliseconds for opening a connection. */
  connectTimeout: number
  /** Bytes of an answer's head. */
  maxHeaderSize: number
}

type Settled = (outcome: HttpReply | NetworkFault) => void

/** Addresses of one pool whose parsed parts are cached. */
const TARGETS_KEPT = 1024
/**
 * Exchanges that wait for a connection of one origin. Callers have lower limits of their own; this one protects from
 * a caller without any.
 */
const WAITING_MAX = 10_000
/** Bytes of one read of a connection. Most answers have less than 300. */
const READ = 16 * 1024
/** Requests up to this size share one buffer, bytes. */
const SHARED = 64 * 1024
/** A connection that was idle for longer is checked before it is used again, milliseconds. */
const DOUBTED = 1000
/** The longest wait of Node's timers, milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1
/** Milliseconds between two probes of a silent peer by the kernel. */
const PROBED = 60_000

/**
 * Sends requests with short answers, thousands a second: HTTP/1.1 over kept-alive connections, a limited number for
 * each pool and origin. A request is written in one piece from a shared buffer, and an answer is parsed in the buffer
 * that it was read into. One sweep checks all deadlines, instead of a timer for each. For the same work, undici takes
 * twice the time and three times the memory.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #pools = new Map<HttpPool, Pooled>()
  #timer: NodeJS.Timeout | undefined
  #wakeAt = Infinity
  #closed = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** `settled` is called once, after `send` has returned. `request` is not used after that. */
  send(request: HttpRequest, pool: HttpPool, settled: Settled): HttpAttempt {
    const now = performance.now()
    const deadline = now + Math.min(request.timeout, LONGEST_TIMEOUT)
    const exchange = new Exchange(request.maxBody, deadline, settled)
    try {
      if (this.#closed) throw new NetworkFault('aborted', 'closed')
      const target = this.#targetOf(request.url, pool)
      target.origin.begin(exchange, encode(request, target), now)
      this.#wakeBy(deadline)
    } catch (error) {
      queueMicrotask(() => exchange.settle(networkFault(error, 'connecting')))
    }
    return exchange
  }

  /** Ends every exchange with a fault of kind `aborted` and closes every connection. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { origins } of this.#pools.values()) for (const origin of origins.values()) origin.close()
  }

  #targetOf(url: string, pool: HttpPool): Target {
    let pooled = this.#pools.get(pool)
    if (pooled === undefined) {
      pooled = { origins: new Map(), targets: new BoundedMap(TARGETS_KEPT) }
      this.#pools.set(pool, pooled)
    }
    return pooled.targets.get(url) ?? this.#newTarget(url, pool, pooled)
  }

  #newTarget(url: string, pool: HttpPool, { origins, targets }: Pooled): Target {
    const { key, address, start } = placeOf(url, pool.fresh === true ? 'close' : 'keep-alive')
    let origin = origins.get(key)
    if (origin === undefined) {
      origin = new Origin(key, address, pool, { ...this.#options, wakeBy: (at) => this.#wakeBy(at) })
      origins.set(key, origin)
    }
    const target = { origin, start }
    targets.set(url, target)
    return target
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#closed) return
    clearTimeout(this.#timer)
    this.#wakeAt = at
    this.#timer = setTimeout(wake, Math.max(1, Math.ceil(at - performance.now())), this)
  }

  /**
   * Called by the timer. A slow fsync may stop the event loop for seconds. Then answers have arrived that are not read yet: Node
   * reads them after its timers and before `setImmediate`.
   */
  wake(): void {
    if (this.#closed) return
    if (performance.now() - this.#wakeAt > STALLED) setImmediate(() => this.sweep())
    else this.sweep()
  }

  /** Ends exchanges that are past their deadline, and connections that were idle or opening for too long. */
  sweep(): void {
    this.#wakeAt = Infinity
    const now = performance.now()
    let next = Infinity
    for (const { origins } of this.#pools.values())
      for (const origin of origins.values()) next = Math.min(next, origin.sweep(now))
    this.#wakeBy(next)
  }
}

/** The parts of a URL that the connection and the head of a request need. @throws {NetworkFault} */
export function placeOf(url: string, connection: 'close' | 'keep-alive'): Place {
  const { protocol, host, hostname, port, pathname, search } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new NetworkFault('other', `${protocol} is not HTTP`)
  const secure = protocol === 'https:'
  return {
    key: `${protocol}//${host}`,
    address: {
      secure,
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (secure ? 443 : 80) : Number(port),
    },
    start: ` ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}`,
  }
}

interface Place {
  key: string
  address: Address
  /** The part of a request's head after the method. */
  start: string
}

function wake(sender: Sender): void {
  sender.wake()
}

/**
 * The origins and cached addresses of one pool. Origins come from the configuration and are few, but the service has a
 * URL for each session.
 */
interface Pooled {
  origins: Map<string, Origin>
  targets: BoundedMap<string, Target>
}

/** The target of requests to one URL. */
interface Target {
  origin: Origin
  /** The part of their head after the method. */
  start: string
}

/** One request and its answer. */
class Exchange implements HttpAttempt {
  readonly maxBody: number
  /** Of `performance.now()`. */
  readonly deadline: number
  readonly #settled: Settled
  #done = false
  /** The whole request, while it waits for a connection. */
  bytes: Buffer | null = null
  stage: Stage = 'connecting'
  /** Where the exchange must be removed if it ends early: its connection, or the origin in whose queue it waits. */
  holder: { abandon(exchange: Exchange): void } | null = null

  constructor(maxBody: number, deadline: number, settled: Settled) {
    this.maxBody = maxBody
    this.deadline = deadline
    this.#settled = settled
  }

  settle(outcome: HttpReply | NetworkFault): void {
    if (this.#done) return
    this.#done = true
    this.bytes = null
    this.#settled(outcome)
  }

  abort(): void {
    this.end(new NetworkFault('aborted', 'aborted by the caller'))
  }

  end(fault: NetworkFault): void {
    if (this.#done) return
    const { holder } = this
    this.holder = null
    holder?.abandon(this)
    this.settle(fault)
  }

  get timeout(): NetworkFault {
    return this.stage === 'connecting' && this.holder instanceof Connection && !this.holder.opened
      ? new NetworkFault('unreachable', 'no connection in time')
      : new NetworkFault('timeout', 'no complete answer in time')
  }
}

interface Address {
  secure: boolean
  host: string
  port: number
}

/**
 * The connections of one pool to one origin, at most `pool.size`. Exchanges wait for a connection in order of arrival.
 */
class Origin {
  readonly key: string
  readonly address: Address
  readonly options: SenderOptions & { wakeBy: (at: number) => void }
  readonly #limit: number
  readonly #fresh: boolean
  readonly #connections = new Set<Connection>()
  /** The connection that was used last is used first, so that surplus connections stay idle and are closed. */
  readonly #idle: Connection[] = []
  readonly #waiting = new Set<Exchange>()
  /** The TLS session that a new connection can resume. */
  session: Buffer | undefined

  constructor(
    key: string,
    address: Address,
    pool: HttpPool,
    options: SenderOptions & { wakeBy: (at: number) => void },
  ) {
    this.key = key
    this.address = address
    this.options = options
    this.#limit = Math.max(1, pool.size)
    this.#fresh = pool.fresh === true
  }

  /** `bytes` may be part of the shared buffer. @throws {NetworkFault} when too many exchanges wait already. */
  begin(exchange: Exchange, bytes: Buffer, now: number): void {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle.take(exchange, bytes, now)
    if (this.#waiting.size >= WAITING_MAX)
      throw new NetworkFault('other', `${WAITING_MAX} requests wait for ${this.key} already`)
    exchange.bytes = Buffer.from(bytes)
    this.wait(exchange, now)
  }

  /** Adds an exchange that has its own copy of its bytes to the queue. */
  wait(exchange: Exchange, now: number): void {
    exchange.holder = this
    this.#waiting.add(exchange)
    this.#connect(now)
  }

  /** Opens a connection for the first waiting exchange, if the limit allows one more. */
  #connect(now: number): void {
    const [next] = this.#waiting
    if (next === undefined || this.#connections.size >= this.#limit) return
    this.#waiting.delete(next)
    const connection = new Connection(this, next, now)
    this.#connections.add(connection)
    this.options.wakeBy(connection.openBy)
  }

  abandon(exchange: Exchange): void {
    this.#waiting.delete(exchange)
  }

  /** The connection can be used again for `ms`; 0: not at all. */
  release(connection: Connection, ms: number, now: number): void {
    if (this.#fresh || ms === 0) return connection.close()
    const [next] = this.#waiting
    if (next?.bytes) {
      this.#waiting.delete(next)
      return connection.take(next, next.bytes, now)
    }
    connection.rest(now, ms)
    this.options.wakeBy(now + ms)
    this.#idle.push(connection)
  }

  /** The connection cannot be used again. */
  remove(connection: Connection): void {
    if (!this.#connections.delete(connection)) return
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
    this.#connect(performance.now())
  }

  /** @returns the time at which the next deadline ends. */
  sweep(now: number): number {
    let next = Infinity
    for (const exchange of this.#waiting) {
      if (exchange.deadline <= now) exchange.end(exchange.timeout)
      else next = Math.min(next, exchange.deadline)
    }
    for (const connection of this.#connections) next = Math.min(next, connection.sweep(now))
    return next
  }

  close(): void {
    const closed = new NetworkFault('aborted', 'closed')
    const connections = [...this.#connections]
    this.#connections.clear()
    this.#idle.length = 0
    for (const exchange of this.#waiting) exchange.end(closed)
    for (const connection of connections) connection.closeWith(closed)
  }
}

/**
 * - `opening`
 * - `open`: idle, or an exchange is under way
 * - `looked at`: for one pass of the event loop, to see whether the peer has closed it
 * - `closed`
 */
type ConnectionState = 'opening' | 'open' | 'looked at' | 'closed'

class Connection {
  readonly #origin: Origin
  readonly #socket: Socket
  readonly #parser: AnswerParser
  #state: ConnectionState = 'opening'
  #exchange: Exchange | null
  #answers = 0
  /** When it began to open, or became idle. */
  #since: number
  #idleUntil = Infinity
  #error: Error | null = null

  constructor(origin: Origin, exchange: Exchange, now: number) {
    this.#origin = origin
    this.#exchange = exchange
    this.#since = now
    exchange.holder = this
    this.#parser = new AnswerParser(origin.options.maxHeaderSize)
    const buffer = Buffer.allocUnsafeSlow(READ)
    const callback = (length: number): boolean => {
      this.#read(buffer.subarray(0, length))
      return true
    }
    this.#socket = connect(origin.address, { buffer, callback }, origin)
    this.#socket
      .once(origin.address.secure ? 'secureConnect' : 'connect', () => this.#opened())
      .once('end', () => this.#ended())
      .on('error', (error) => (this.#error ??= error))
      .once('close', () => this.#closed())
  }

  get opened(): boolean {
    return this.#state !== 'opening'
  }

  get openBy(): number {
    return this.#since + this.#origin.options.connectTimeout
  }

  /** It is idle now, and is closed after `ms`. */
  rest(now: number, ms: number): void {
    this.#since = now
    this.#idleUntil = now + ms
  }

  /** `bytes` may be part of the shared buffer. */
  take(exchange: Exchange, bytes: Buffer, now: number): void {
    this.#exchange = exchange
    exchange.holder = this
    if (this.#state === 'open' && now - this.#since > DOUBTED) this.#look()
    if (this.#state === 'open') this.#write(exchange, bytes)
    else exchange.bytes ??= Buffer.from(bytes)
  }

  /**
   * A server may close a connection after its first answer, or while it is idle, without announcing it. One pass of
   * the event loop shows whether it did.
   */
  #look(): void {
    this.#state = 'looked at'
    setImmediate(() => {
      if (this.#state === 'looked at') this.#opened()
    })
  }

  #opened(): void {
    if (this.#socket.destroyed) return
    this.#state = 'open'
    const exchange = this.#exchange
    if (exchange?.bytes) this.#write(exchange, exchange.bytes)
  }

  #write(exchange: Exchange, bytes: Buffer): void {
    exchange.stage = 'sent'
    this.#parser.expect(exchange.maxBody)
    // TLS encrypts after `write` returns, when the shared buffer may be in use again.
    const whole = exchange.bytes ?? (this.#origin.address.secure ? Buffer.from(bytes) : bytes)
    exchange.bytes = null
    this.#socket.write(whole)
    // The kernel did not accept all bytes at once: the rest is still in the shared buffer.
    if (whole === bytes && this.#socket.writableLength > 0) forgetShared()
  }

  #read(chunk: Buffer): void {
    const exchange = this.#exchange
    // The server sent bytes that answer no request.
    if (exchange === null || exchange.stage === 'connecting') return this.close()
    let used: number
    try {
      used = this.#parser.read(chunk)
      if (this.#parser.begun) exchange.stage = 'answering'
    } catch (error) {
      this.#error = networkFault(error, 'answering')
      return this.close()
    }
    if (this.#parser.complete) this.#answered(exchange, used === chunk.length)
  }

  #answered(exchange: Exchange, alone: boolean): void {
    const { reply, keptFor } = this.#parser
    this.#exchange = null
    exchange.holder = null
    this.#answers++
    if (this.#answers === 1) this.#look()
    const now = performance.now()
    // The connection cannot be used again if the answer came before the whole request was sent, or if bytes follow
    // it.
    const clean = alone && this.#socket.writableLength === 0
    this.#origin.release(this, clean ? keptFor : 0, now)
    exchange.settle(reply)
  }

  #ended(): void {
    if (this.#exchange?.stage !== 'answering' || !this.#parser.end()) return
    this.#answered(this.#exchange, false)
  }

  #closed(): void {
    const exchange = this.#exchange
    const unsent = this.#state === 'looked at'
    this.#state = 'closed'
    this.#exchange = null
    this.#origin.remove(this)
    if (exchange === null) return
    if (unsent) return this.#origin.wait(exchange, performance.now())
    exchange.holder = null
    exchange.settle(networkFault(this.#error ?? new Error('other side closed'), exchange.stage))
  }

  /** The caller ended the exchange, or its time is over. The peer only stops when the connection is closed. */
  abandon(): void {
    this.#exchange = null
    this.close()
  }

  close(): void {
    this.#socket.destroy()
    this.#origin.remove(this)
  }

  closeWith(fault: NetworkFault): void {
    this.#exchange?.end(fault)
    this.#socket.destroy()
  }

  /** @returns the time at which the next deadline of this connection or its exchange ends. */
  sweep(now: number): number {
    const exchange = this.#exchange
    if (exchange !== null && exchange.deadline <= now) exchange.end(exchange.timeout)
    else if (this.#state === 'opening') {
      if (this.openBy > now) return Math.min(this.openBy, exchange?.deadline ?? Infinity)
      this.#error = new Error('no connection in time')
      this.close()
    } else if (exchange === null && this.#idleUntil <= now) this.close()
    else return exchange?.deadline ?? this.#idleUntil
    return Infinity
  }
}

/**
 * The name of a service on another continent has addresses of IPv4 and IPv6, and here is no IPv6: Node gives the first
 * address 250 ms, and one lost packet takes a second.
 */
const FAMILY = 2500
const lookup = createLookup(resolve)

/**
 * `onread`: absent for a socket that is read as a stream. `resumable`: its TLS session is resumed, and replaced by
 * the one of this connection.
 */
export function connect(
  { host, port, secure }: Address,
  onread?: OnReadOpts,
  resumable: { session: Buffer | undefined } = { session: undefined },
): Socket {
  const options = {
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: PROBED,
    autoSelectFamilyAttemptTimeout: FAMILY,
    lookup,
    ...(onread === undefined ? {} : { onread }),
  }
  if (!secure) return connectPlain(options)
  const name = isIP(host) === 0 ? { servername: host } : {}
  const { session } = resumable
  const resumed = session === undefined ? {} : { session }
  return connectSecure({ ...options, ...name, ...resumed, ALPNProtocols: ['http/1.1'] }).on(
    'session',
    (next) => (resumable.session = next),
  )
}

/** Bytes for the head of a request, before its body. */
const HEAD = 8 * 1024
let shared = Buffer.allocUnsafeSlow(SHARED)

function forgetShared(): void {
  shared = Buffer.allocUnsafeSlow(SHARED)
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i
/** CR LF and `name: ` for each header name. The configuration and our code have few names. */
const labels = new BoundedMap<string, string>(TARGETS_KEPT)
/** Characters that no value of a header may have. */
// oxlint-disable-next-line no-control-regex
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** The whole request, in the shared buffer if it fits. @throws {NetworkFault} for an invalid header. */
export function encode(
  { method, headers, body }: Pick<HttpRequest, 'method' | 'headers' | 'body'>,
  { start }: Pick<Place, 'start'>,
): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  let head = method + start
  for (const name in headers) {
    const value = headers[name] ?? ''
    const label = labels.get(name) ?? labelOf(name)
    if (label === null || NO_VALUE.test(value))
      throw new NetworkFault('other', `the header ${JSON.stringify(name)} cannot be sent`)
    head += label + value
  }
  const length = bytes?.length ?? 0
  head += method === 'GET' ? '\r\n\r\n' : `\r\ncontent-length: ${length}\r\n\r\n`
  const size = head.length + length
  const target = head.length <= HEAD && size <= SHARED ? shared : Buffer.allocUnsafeSlow(size)
  target.write(head, 0, 'latin1')
  if (bytes !== undefined) target.set(bytes, head.length)
  return target.subarray(0, size)
}

function labelOf(name: string): string | null {
  if (!NAME.test(name)) return null
  const label = `\r\n${name}: `
  labels.set(name, label)
  return label
}
