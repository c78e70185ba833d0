import { createParser, type EventSourceParser } from 'eventsource-parser'
import { NetworkFault } from '../std/errors.ts'
import type { Clock, Timer } from '../std/ports.ts'
import type { Frame } from './frame.ts'

/** The service sends a ping every 15 s. After three missed pings the connection is dead. Milliseconds. */
const SILENCE = 45_000
/** How many times the silence is checked in this time. A timer for every chunk would cost more than the chunk. */
const SILENCE_CHECKS = 9
const PING = 'ping'
/** Maximum characters of one line for the parser. The service's largest body is 16 MiB. */
const LINE_KEPT = 16 * 1024 * 1024
/** A line of more characters ends the connection. */
const LINE_MAX = 16 * LINE_KEPT
/** Maximum characters of one frame: it may have several lines. */
const FRAME_MAX = 2 * LINE_KEPT

/** A line or frame that is too long. */
export class OversizedFrame extends NetworkFault {}

interface FrameListener {
  /**
   * @returns the `from_seq` of a frame that reports that the replay stopped, and after which the connection is not
   * read any more; null for any other frame.
   */
  onFrame: (frame: Frame) => string | null
  /** The replay stopped; the rest has to be requested from `from`. */
  onStop: (from: string) => void
  /** Milliseconds, the service's `retry:`. */
  onRetry: (ms: number) => void
  /** The service is alive and has nothing to send. */
  onPing: () => void
}

/** The service closed the connection, or the replay stopped at its limit and the rest has to be requested. */
export type ConnectionEnd = 'closed' | 'replay_stop'

/** One connection of a stream. Its reader requests each chunk with `next`. */
export class StreamConnection {
  readonly #chunks: AsyncIterator<Uint8Array, unknown>
  readonly #abort: AbortController
  readonly #frames: FrameReader
  readonly #onStop: (from: string) => void
  readonly #silence: SilenceWatchdog

  constructor(
    chunks: AsyncIterable<Uint8Array>,
    abort: AbortController,
    listener: FrameListener,
    clock: Clock,
  ) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#abort = abort
    this.#frames = new FrameReader(listener)
    this.#onStop = listener.onStop
    this.#silence = new SilenceWatchdog(clock, abort)
  }

  /**
   * Waits for the next chunk and reports the frames that are complete with it.
   * @returns null while the connection is open.
   * @throws {NetworkFault} when it broke, was silent, or sent a frame that is too long.
   */
  async next(): Promise<ConnectionEnd | null> {
    const chunk = await this.#silence.next(this.#chunks)
    if (chunk === null) return 'closed'
    try {
      this.#frames.read(chunk)
    } catch (error) {
      if (this.#frames.stoppedFrom === null) throw error
    }
    const from = this.#frames.stoppedFrom
    if (from === null) return null
    this.#onStop(from)
    return 'replay_stop'
  }

  close(): void {
    this.#silence.stop()
    this.#abort.abort()
  }
}

/** Parses the bytes of one connection into frames. */
class FrameReader {
  readonly #parser: EventSourceParser
  readonly #decoder = new TextDecoder()
  readonly #lines = new LineCutter()
  #stoppedFrom: string | null = null
  #tooLong = false

  constructor({ onFrame, onRetry, onPing }: FrameListener) {
    this.#parser = createParser({
      maxBufferSize: FRAME_MAX,
      onEvent: ({ event, id, data }) => {
        if (this.#stoppedFrom === null) this.#stoppedFrom = onFrame({ event, id, data })
      },
      onRetry,
      onComment: (comment) => {
        if (comment.trim() === PING) onPing()
      },
      onError: ({ type }) => {
        this.#tooLong ||= type === 'max-buffer-size-exceeded'
      },
    })
  }

  /** The replay stopped at its limit: no more frames follow on the connection. */
  get stoppedFrom(): string | null {
    return this.#stoppedFrom
  }

  /**
   * Reports the frames that are complete with this chunk.
   * @throws {NetworkFault} for a line or a frame that is too long.
   */
  read(chunk: Uint8Array): void {
    this.#parser.feed(this.#lines.cut(this.#decoder.decode(chunk, { stream: true })))
    if (this.#tooLong) throw new OversizedFrame('other', `a frame is longer than ${FRAME_MAX} characters`)
  }
}

/**
 * Cuts lines that are too long. A persisted frame with `data:` of 20 MiB and `id: 7` becomes one
 * with unparsable data and the same id, so that the cursor advances past it.
 */
class LineCutter {
  /** Characters of the line that has begun. */
  #length = 0

  /** The part of a chunk for the parser. @throws {NetworkFault} when a line is too long. */
  cut(text: string): string {
    const last = Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r'))
    if (this.#length + text.length <= LINE_KEPT) {
      this.#length = last === -1 ? this.#length + text.length : text.length - last - 1
      return text
    }
    let kept = ''
    let from = 0
    for (const { index } of text.matchAll(/[\r\n]/g)) {
      kept += this.#take(text.slice(from, index)) + text.charAt(index)
      this.#length = 0
      from = index + 1
    }
    return kept + this.#take(text.slice(from))
  }

  #take(line: string): string {
    const kept = line.slice(0, Math.max(0, LINE_KEPT - this.#length))
    this.#length += line.length
    if (this.#length > LINE_MAX)
      throw new OversizedFrame('other', `a line is longer than ${LINE_MAX} characters`)
    return kept
  }
}

/**
 * Ends a connection that sends nothing for 45 s while its reader waits. A reader that needs a minute for a chunk, because
 * its disk is slow, does not count: the service is not silent then.
 */
export class SilenceWatchdog {
  readonly #clock: Clock
  readonly #connection: AbortController
  /** Steady milliseconds; null while the reader is busy. */
  #waitsSince: number | null = null
  #timer: Timer | null = null
  #fault: NetworkFault | null = null

  constructor(clock: Clock, connection: AbortController) {
    this.#clock = clock
    this.#connection = connection
  }

  /**
   * The next chunk of a body; null at its end. Only the wait for it counts as silence.
   * @throws {NetworkFault} when the body broke, or nothing came.
   */
  async next(chunks: AsyncIterator<Uint8Array, unknown>): Promise<Uint8Array | null> {
    this.wait()
    try {
      const next = await chunks.next()
      return next.done === true ? null : next.value
    } catch (error) {
      throw this.#fault ?? error
    } finally {
      this.heard()
    }
  }

  /** The reader waits for the next chunk. */
  wait(): void {
    this.#waitsSince = this.#clock.steady()
    this.#timer ??= this.#clock.after(SILENCE / SILENCE_CHECKS, () => this.#check())
  }

  /** A chunk came, and the reader works on it. */
  heard(): void {
    this.#waitsSince = null
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#waitsSince = null
  }

  #check(): void {
    this.#timer = null
    if (this.#waitsSince === null) return
    if (this.#clock.steady() - this.#waitsSince < SILENCE) {
      this.#timer = this.#clock.after(SILENCE / SILENCE_CHECKS, () => this.#check())
      return
    }
    this.#fault = new NetworkFault('timeout', `nothing came for ${SILENCE / 1000} s`)
    this.#connection.abort(this.#fault)
  }
}
