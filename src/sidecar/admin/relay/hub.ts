import type { Clock, Timer } from '../../../std/ports.ts'
import { isBefore } from '../../../core/seq.ts'
import { PING, type RelayFrame } from './frame.ts'

/** Unread bytes past which a reader gets no transient frames, and past which it is cut (rules LIM-31, LIM-32). */
const DROP_TRANSIENT = 1024 * 1024
const CUT = 8 * 1024 * 1024
/** Milliseconds between two pings. */
const PING_EVERY = 15_000
/** Handing frames to all readers may take one part in so many of our time; frames that come meanwhile go out together. */
const SHARE = 10
/** Frames wait for that at most so long, milliseconds, and so many bytes of them. */
const LONGEST_REST = 100
const BATCH = 512 * 1024

/** Somebody who reads the stream. */
export interface Reader {
  /** null: every session's frames. */
  readonly sessionId: string | null
  readonly transient: boolean
  /** Bytes that were written and that it has not taken. */
  unread(): number
  write(bytes: Buffer): void
  cut(reason: string): void
}

/** What a reader has already: frames up to here are not sent again. */
export interface Start {
  pos: number
  seq: string
}

/** Hands each frame, encoded once, to every reader that wants it. A reader that is behind holds up nobody. */
export class Hub {
  readonly #clock: Clock
  readonly #onSent: (count: number) => void
  /** Everybody who is to be pinged; those who read live frames with what they had when they joined. */
  readonly #readers = new Set<Reader>()
  readonly #live = new Map<Reader, Start | null>()
  #batch: RelayFrame[] = []
  #bytes = 0
  #flushing: Timer | null = null
  #pinging: Timer | null = null
  /** Steady milliseconds. */
  #restUntil = 0
  #lastPos = 0

  /** `onSent`: frames were written, each reader's counted. */
  constructor(clock: Clock, onSent: (count: number) => void) {
    this.#clock = clock
    this.#onSent = onSent
  }

  get size(): number {
    return this.#readers.size
  }

  /** The place of the last frame that was published. */
  get lastPos(): number {
    return this.#lastPos
  }

  add(reader: Reader): void {
    this.#readers.add(reader)
    this.#pinging ??= this.#clock.after(PING_EVERY, () => this.#ping())
  }

  /** From now on the reader gets what is published, less what it has. */
  join(reader: Reader, start: Start | null): void {
    if (!this.#readers.has(reader)) return
    // What was published before is in the log that it has read, or of no interest to it.
    this.#flush()
    this.#live.set(reader, start)
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader)
    this.#live.delete(reader)
    if (this.#readers.size > 0) return
    this.#pinging?.cancel()
    this.#pinging = null
  }

  /** A frame at `pos` is durable that nobody reads. */
  pass(pos: number): void {
    this.#lastPos = pos
  }

  publish(frame: RelayFrame): void {
    this.#lastPos = frame.place?.pos ?? this.#lastPos
    if (this.#live.size === 0) return
    this.#batch.push(frame)
    this.#bytes += frame.bytes.length
    if (this.#bytes >= BATCH) this.#flush()
    else this.#flushing ??= this.#clock.after(this.#restUntil - this.#clock.steady(), () => this.#flush())
  }

  #flush(): void {
    this.#flushing?.cancel()
    this.#flushing = null
    const frames = this.#batch
    if (frames.length === 0) return
    this.#batch = []
    this.#bytes = 0
    const started = this.#clock.steady()
    const views = new Views(frames)
    let sent = 0
    for (const [reader, start] of this.#live) {
      const unread = reader.unread()
      if (unread > CUT) {
        reader.cut(`${unread} bytes behind`)
        this.leave(reader)
      } else {
        const transient = reader.transient && unread <= DROP_TRANSIENT
        const news =
          start === null
            ? views.of(reader.sessionId, transient)
            : this.#first(reader, start, transient, frames)
        if (news.count > 0) reader.write(news.bytes)
        sent += news.count
      }
    }
    if (sent > 0) this.#onSent(sent)
    const ended = this.#clock.steady()
    this.#restUntil = ended + Math.min((ended - started) * (SHARE - 1), LONGEST_REST)
  }

  /** The first frames after joining: some of them the reader may have from the log. */
  #first(reader: Reader, start: Start, transient: boolean, frames: readonly RelayFrame[]): View {
    const news = frames.filter(({ place }) => place === null || isAfter(place, start))
    if (news.some(({ place }) => place !== null)) this.#live.set(reader, null)
    return view(news, reader.sessionId, transient)
  }

  #ping(): void {
    for (const reader of this.#readers) if (reader.unread() <= CUT) reader.write(PING)
    this.#pinging = this.#clock.after(PING_EVERY, () => this.#ping())
  }
}

/** The bytes of a batch for each kind of reader, made once. */
class Views {
  readonly #frames: readonly RelayFrame[]
  readonly #made = new Map<string, View>()

  constructor(frames: readonly RelayFrame[]) {
    this.#frames = frames
  }

  of(sessionId: string | null, transient: boolean): View {
    const key = `${transient ? 1 : 0}${sessionId ?? ''}`
    let made = this.#made.get(key)
    if (made === undefined) this.#made.set(key, (made = view(this.#frames, sessionId, transient)))
    return made
  }
}

/** What one kind of reader gets of a batch. */
interface View {
  bytes: Buffer
  /** Frames in it. */
  count: number
}

function view(frames: readonly RelayFrame[], sessionId: string | null, transient: boolean): View {
  const wanted = frames
    .filter((frame) => sessionId === null || frame.sessionId === sessionId)
    .filter(({ place }) => transient || place !== null)
    .map(({ bytes }) => bytes)
  return { bytes: Buffer.concat(wanted), count: wanted.length }
}

function isAfter(place: Start, { pos, seq }: Start): boolean {
  return place.pos > pos && isBefore(seq, place.seq)
}
