import { ServiceError } from '../core/errors.ts'
import { BoundedMap } from '../std/bounded-map.ts'
import { isCursor, isWhole } from '../core/seq.ts'
import { OversizedFrame, type StreamConnection } from '../protocol/connection.ts'
import type { Brought } from '../protocol/reconnect-policy.ts'
import { ResumableStream } from '../protocol/resumable-stream.ts'
import { openEvents } from './transport/events.ts'
import { sleep } from './transport/requester.ts'
import { broken } from './download.ts'
import { readFrame, type StreamEvent } from './event.ts'
import { link } from './signal.ts'
import { FINAL } from './poll.ts'
import type { Frame } from '../protocol/frame.ts'
import type { CallOptions } from './request.ts'
import type { Operation } from './call.ts'
import { named } from './transport.ts'
import type { Transport } from './transport.ts'

export interface StreamOptions extends CallOptions {
  /** The `seq` to continue after; `'0'` for everything. Without one: live events only. */
  after?: string | number
  /** The stream fails after this many milliseconds without a connection. Default 5 minutes. */
  patience?: number
  /** Called before each wait for the next connection. */
  onReconnect?: (notice: Reconnection) => void
}

export interface Reconnection {
  /** `closed`, `replay_stop`, or the code of the error. */
  reason: string
  /** Milliseconds. */
  wait: number
  /** null: there is no cursor yet, so events until the next connection are lost. */
  after: string | null
}

/** Events in order of arrival, over as many connections as needed. It is read once; leaving the loop closes it. */
export interface EventStream extends AsyncIterable<StreamEvent>, AsyncDisposable {
  /** The highest `seq` that was returned; before that, the first cursor, or null. */
  readonly cursor: string | null
  close(): void
}

const PATIENCE = 300_000
/** Sessions whose last seq is known: so many may be in a part that is replayed. */
const SESSIONS = 10_000

interface Connection {
  stream: StreamConnection
  abort: AbortController
  unlink: () => void
  /** The first cursor. */
  from: string | null
  /** An event came. */
  useful: boolean
}

/** Opens an event stream. Once this resolves, all later events are on it. @throws {ServiceError} */
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
  /** The highest seq that was read, returned or not. */
  #seen: string | null
  /** The first cursor. */
  readonly #start: string | null
  /** The last seq of each session. */
  readonly #lasts = new BoundedMap<string | null, string>(SESSIONS)
  #cursor: string | null
  readonly #resumable: ResumableStream
  #goodAt: number
  #next = { reason: 'closed', wait: 0 }
  #closed = false

  constructor(transport: Transport, pathOf: () => Promise<string>, options: StreamOptions) {
    const { after } = options
    if (after !== undefined && !isCursor(String(after))) throw new TypeError(`after: ${after} is not a seq`)
    this.#transport = transport
    this.#pathOf = pathOf
    this.#options = options
    this.#seen = after === undefined ? null : String(after)
    this.#start = this.#seen
    this.#cursor = this.#seen
    const { clock, random, slot } = transport
    // The first connection must succeed within the time of one call: it does not wait for a slot that is probably
    // free.
    this.#resumable = new ResumableStream({ clock, random, slot, slotInUse: false })
    this.#goodAt = clock.steady()
    this.#unlink = [link(options.signal, this.#ending), link(transport.stopped, this.#ending)]
  }

  get cursor(): string | null {
    return this.#cursor
  }

  close(): void {
    this.#closed = true
    for (const off of this.#unlink) off()
    this.#leave()
    this.#resumable.left()
    this.#ending.abort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent, void> {
    try {
      while (!this.#closed) {
        for (const event of this.#ready.splice(0)) {
          const { seq } = event
          if (seq !== null && (this.#cursor === null || isAfter(seq, this.#cursor))) this.#cursor = seq
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

  /** The first connection: retried within the time of the call. */
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

  /** Milliseconds to wait before the next attempt. @throws an error that no further attempt can fix. */
  #waitAfter(error: unknown, anything = false): number {
    if (!(error instanceof ServiceError) || !error.transient || FINAL.has(error.code)) throw error
    return this.#resumable.broken(error, anything)
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { clock, requester } = this.#transport
    const abort = new AbortController()
    const unlink = [link(this.#ending.signal, abort), link(signal, abort)]
    try {
      const { connection, cursor } = await this.#resumable.connect({
        last: this.#seen,
        abort,
        open: async (from) => {
          await this.#transport.renewToken()
          return await openEvents(requester, await this.#pathOf(), from, abort.signal)
        },
        onFrame: (frame) => this.#accept(frame),
      })
      unlink[1]?.()
      this.#goodAt = clock.steady()
      this.#connection = {
        stream: connection,
        abort,
        unlink: () => unlink[0]?.(),
        from: cursor,
        useful: false,
      }
    } catch (error) {
      for (const off of unlink) off()
      throw error
    }
  }

  async #receive(connection: Connection): Promise<void> {
    try {
      const end = await connection.stream.next()
      if (end !== 'closed') this.#goodAt = this.#transport.clock.steady()
      if (end !== null) this.#drop(end, this.#resumable.ended(end, this.#brought(connection)))
    } catch (error) {
      const fault = broken(
        error instanceof OversizedFrame ? malformed(error) : error,
        connection.abort.signal,
      )
      this.#drop(fault.code, this.#waitAfter(fault, connection.useful))
    }
  }

  #brought({ from, useful }: Connection): Brought {
    return { anything: useful, moved: this.#seen !== from }
  }

  /** @returns the `from_seq` of a frame that says that the replay stopped. */
  #accept(frame: Frame): string | null {
    const meaning = readFrame(frame)
    if ('stop' in meaning) return meaning.stop
    if (this.#connection !== null) this.#connection.useful = true
    if (this.#isNew(meaning.event)) this.#ready.push(meaning.event)
    return null
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
    connection.stream.close()
  }

  /**
   * Whether an event is new. A transient event always is; a persisted one is not when a replay sends it again. A sidecar with
   * a scope sends the first events of a session late, behind higher seqs of others: the order holds within a session.
   */
  #isNew({ seq, session_id: sessionId }: StreamEvent): boolean {
    if (seq === null) return true
    const last = this.#lasts.get(sessionId) ?? this.#start
    if (last !== null && !isAfter(seq, last)) return false
    this.#lasts.set(sessionId, seq)
    if (this.#seen === null || isAfter(seq, this.#seen)) this.#seen = seq
    return true
  }
}

/** A seq that is not a number cannot be compared: it counts as later than any other. */
function isAfter(seq: string, seen: string): boolean {
  return isWhole(seq) && isWhole(seen) ? BigInt(seq) > BigInt(seen) : seq !== seen
}

function malformed(fault: OversizedFrame): ServiceError {
  return new ServiceError({ code: 'malformed_answer', status: 200, message: fault.message, cause: fault })
}
