import { backoff } from '../std/backoff.ts'
import { ServiceError } from '../core/errors.ts'
import { SLOT_FREED, StreamSlot } from '../protocol/slot.ts'
import { openEvents } from './transport/events.ts'
import { sleep } from './transport/requester.ts'
import { broken } from './download.ts'
import type { StreamEvent } from './event.ts'
import { FrameReader } from './frames.ts'
import { link } from './signal.ts'
import { FINAL } from './poll.ts'
import type { CallOptions } from './request.ts'
import { nextChunk } from './silence.ts'
import type { Operation } from './call.ts'
import { named } from './transport.ts'
import type { Transport } from './transport.ts'

export interface StreamOptions extends CallOptions {
  /** The `seq` to go on from; `'0'` for everything. Without one: live events only. */
  after?: string | number
  /** Milliseconds without a connection after which it gives up. Default 5 minutes. */
  patience?: number
  /** Told before each wait for another connection. */
  onReconnect?: (notice: Reconnection) => void
}

export interface Reconnection {
  /** `closed`, `replay_stop`, or the code of the error. */
  reason: string
  /** Milliseconds. */
  wait: number
  /** null: there is no cursor yet, so what happens until the next connection is on no stream. */
  after: string | null
}

/** Events as they come, over as many connections as it takes. It is read once; breaking off closes it. */
export interface EventStream extends AsyncIterable<StreamEvent>, AsyncDisposable {
  /** The last `seq` that was handed over, or where it began; null before. */
  readonly cursor: string | null
  close(): void
}

const RETRY_CAP = 60_000
const FAILURE = { base: 1000, max: 60_000 }
const PATIENCE = 300_000
interface Connection {
  chunks: AsyncIterator<Uint8Array, unknown>
  frames: FrameReader
  abort: AbortController
  unlink: () => void
  openedAt: number
  /** Where it began. */
  from: string | null
}

/** Opens an event stream: once this resolves, what happens from now on will be on it. @throws {ServiceError} */
export async function openStream(
  transport: Transport,
  pathOf: () => Promise<string>,
  options: StreamOptions = {},
): Promise<EventStream> {
  const stream = new Subscription(transport, pathOf, options)
  try {
    await transport.within('openStream', options, (operation) => stream.open(operation))
    return stream
  } catch (error) {
    stream.close()
    throw error
  }
}

class Subscription implements EventStream {
  readonly #transport: Transport
  readonly #pathOf: () => Promise<string>
  readonly #options: StreamOptions
  readonly #ending = new AbortController()
  readonly #unlink: (() => void)[]
  #connection: Connection | null = null
  #ready: StreamEvent[] = []
  /** The last seq that was read, handed over or not. */
  #seen: string | null
  #cursor: string | null
  /** Where a replay that stopped at its limit goes on. */
  #resumeAt: string | null = null
  /** Milliseconds; the service's `retry:` once it said one. */
  #retry = SLOT_FREED
  readonly #slot = new StreamSlot()
  #wasOpen = false
  #failures = 0
  #goodAt: number
  #next = { reason: 'closed', wait: 0 }
  #closed = false

  constructor(transport: Transport, pathOf: () => Promise<string>, options: StreamOptions) {
    const { after } = options
    if (after !== undefined && !/^\d{1,40}$/.test(String(after)))
      throw new TypeError(`after: ${after} is no seq`)
    this.#transport = transport
    this.#pathOf = pathOf
    this.#options = options
    this.#seen = after === undefined ? null : String(after)
    this.#cursor = this.#seen
    this.#goodAt = transport.clock.steady()
    this.#unlink = [link(options.signal, this.#ending), link(transport.stopped, this.#ending)]
  }

  get cursor(): string | null {
    return this.#cursor
  }

  close(): void {
    this.#closed = true
    for (const off of this.#unlink) off()
    this.#leave()
    this.#ending.abort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent, void> {
    try {
      while (!this.#closed) {
        for (const event of this.#ready.splice(0)) {
          this.#cursor = event.seq ?? this.#cursor
          yield event
          if (this.#closed) return
        }
        if (this.#connection === null) await this.#reconnect()
        else await this.#receive(this.#connection)
      }
    } catch (error) {
      if (!this.#closed) throw named('openStream', error)
    } finally {
      this.close()
    }
  }

  /** The first connection: tried again within the time of the call. */
  async open(operation: Operation): Promise<void> {
    for (;;) {
      try {
        return await this.#connect(operation.signal)
      } catch (error) {
        const wait = this.#waitAfter(error)
        if (wait > operation.left()) throw error
        await sleep(this.#transport.clock, wait, operation.signal)
      }
    }
  }

  async #reconnect(): Promise<void> {
    const { clock } = this.#transport
    const { reason, wait } = this.#next
    this.#options.onReconnect?.({ reason, wait, after: this.#seen })
    await sleep(clock, wait, this.#ending.signal)
    try {
      await this.#connect(this.#ending.signal)
    } catch (error) {
      const again = this.#waitAfter(error)
      const { patience = PATIENCE } = this.#options
      if (clock.steady() + again - this.#goodAt > patience) throw error
      this.#next = { reason: error instanceof ServiceError ? error.code : 'failed', wait: again }
    }
  }

  /** Milliseconds until another attempt makes sense. @throws what no attempt fixes. */
  #waitAfter(error: unknown): number {
    if (!(error instanceof ServiceError) || !error.transient || FINAL.has(error.code)) throw error
    this.#failures++
    const { clock, random } = this.#transport
    const wait = backoff(FAILURE, this.#failures, random, this.#floor())
    // An open that our own budget refused says nothing of the slots.
    const noSlot = error.code === 'rate_limit_exceeded' && !error.unsent
    const taken = noSlot ? this.#slot.refused(clock.steady()) : 0
    return Math.max(wait, taken, error.retryAfter ?? 0)
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { clock, streams } = this.#transport
    const abort = new AbortController()
    const unlink = [link(this.#ending.signal, abort), link(signal, abort)]
    const from = this.#from()
    try {
      await this.#transport.renewToken()
      const chunks = await openEvents(streams, await this.#pathOf(), from, abort.signal)
      unlink[1]?.()
      this.#wasOpen = true
      this.#goodAt = clock.steady()
      this.#connection = {
        chunks: chunks[Symbol.asyncIterator](),
        frames: new FrameReader((ms) => (this.#retry = ms)),
        abort,
        unlink: () => unlink[0]?.(),
        openedAt: this.#goodAt,
        from,
      }
      this.#resumeAt = null
    } catch (error) {
      for (const off of unlink) off()
      throw error
    }
  }

  async #receive(connection: Connection): Promise<void> {
    const { clock } = this.#transport
    try {
      const chunk = await nextChunk(connection.chunks, connection.abort, clock)
      if (chunk === null) return this.#ended(connection)
      this.#goodAt = clock.steady()
      const { events, stop } = connection.frames.read(chunk)
      this.#ready = events.filter((event) => this.#isNews(event))
      if (events.length > 0) this.#failures = 0
      if (stop === null) return
      this.#resumeAt = stop
      // A replay that stops where it began would go round for ever.
      const moved = this.#seen !== connection.from
      this.#slot.ended(clock.steady(), 'replay_stopped')
      const rest = this.#slot.waitAfterStop(clock.steady())
      this.#drop('replay_stop', moved ? rest : Math.max(FAILURE.base, this.#floor()))
    } catch (error) {
      this.#slot.ended(clock.steady(), 'broken')
      const fault = broken(error, connection.abort.signal)
      this.#drop(fault.code, this.#waitAfter(fault))
    }
  }

  /** The service ended it. One that does so at once, again and again, is not hurried by a `retry:` of nothing. */
  #ended({ from, openedAt }: Connection): void {
    const { clock, random } = this.#transport
    const useful = this.#seen !== from || clock.steady() - openedAt >= RETRY_CAP
    this.#failures = useful ? 0 : this.#failures + 1
    this.#slot.ended(clock.steady(), 'closed')
    this.#drop('closed', useful ? this.#floor() : backoff(FAILURE, this.#failures, random, this.#floor()))
  }

  #drop(reason: string, wait: number): void {
    this.#leave()
    this.#next = { reason, wait }
  }

  #leave(): void {
    const connection = this.#connection
    if (connection === null) return
    this.#connection = null
    connection.unlink()
    connection.abort.abort()
  }

  /** A transient event always is; any other, unless a replay began before what was read already. */
  #isNews({ seq }: StreamEvent): boolean {
    if (seq === null) return true
    if (this.#seen !== null && BigInt(seq) <= BigInt(this.#seen)) return false
    this.#seen = seq
    return true
  }

  /** What a stopped replay names may be the next event: going on from the last that was read misses none. */
  #from(): string | null {
    const [seen, stopped] = [this.#seen, this.#resumeAt]
    if (seen === null || stopped === null) return seen ?? stopped
    return BigInt(stopped) < BigInt(seen) ? stopped : seen
  }

  /** `retry:` is a floor: the slot of the connection that ended is freed late. */
  #floor(): number {
    return this.#wasOpen ? Math.min(RETRY_CAP, Math.max(0, this.#retry)) : 0
  }
}
