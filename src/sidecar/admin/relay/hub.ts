import type { Clock, Timer } from '../../../std/ports.ts'
import { isBefore } from '../../../core/seq.ts'
import { PING, type RelayFrame } from './frame.ts'

/** Unread bytes past which a reader gets no transient frames, and past which it is cut (rules LIM-31, LIM-32). */
const DROP_TRANSIENT = 1024 * 1024
const CUT = 8 * 1024 * 1024
/** Milliseconds between two pings. */
const PING_EVERY = 15_000
/**
 * Sending frames to all readers may take one tenth of the time of this process. Frames that arrive meanwhile are sent
 * together.
 */
const SHARE = 10
/** The longest time that frames wait to be sent together, milliseconds, and the most bytes that wait. */
const LONGEST_REST = 100
const BATCH = 512 * 1024

/** A client that reads the stream. */
export interface Reader {
  /** null: the frames of every session. */
  readonly sessionId: string | null
  readonly transient: boolean
  /** Bytes that were written and not read yet. */
  unread(): number
  write(bytes: Buffer): void
  cut(reason: string): void
}

/** What a reader already has: frames up to here are not sent again. `seq` null: only the position counts. */
export interface Start {
  pos: number
  seq: string | null
}

/** Sends each frame, encoded once, to every reader that selects it. A slow reader delays no other. */
export class Hub {
  readonly #clock: Clock
  readonly #onSent: (count: number) => void
  /** All readers, which get pings. `#live`: those that get live frames, with what they had when they joined. */
  readonly #readers = new Set<Reader>()
  readonly #live = new Map<Reader, Start | null>()
  #batch: RelayFrame[] = []
  #bytes = 0
  #flushing: Timer | null = null
  #pinging: Timer | null = null
  /** Steady milliseconds. */
  #restUntil = 0
  #lastPos = 0

  /** `onSent` gets the number of frames written, counted for each reader. */
  constructor(clock: Clock, onSent: (count: number) => void) {
    this.#clock = clock
    this.#onSent = onSent
  }

  get size(): number {
    return this.#readers.size
  }

  /** The position of the last published frame. */
  get lastPos(): number {
    return this.#lastPos
  }

  add(reader: Reader): void {
    this.#readers.add(reader)
    this.#pinging ??= this.#clock.after(PING_EVERY, () => this.#ping())
  }

  /** Sends all frames that are published from now on to the reader, except those that it has. */
  join(reader: Reader, start: Start | null): void {
    if (!this.#readers.has(reader)) return
    // The reader gets no frame of the present batch: it has read them in the log, or they are before its start.
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

  /** A frame that no reader gets was committed at `pos`. */
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
        const unseen =
          start === null
            ? views.of(reader.sessionId, transient)
            : this.#first(reader, start, transient, frames)
        if (unseen.count > 0) reader.write(unseen.bytes)
        sent += unseen.count
      }
    }
    if (sent > 0) this.#onSent(sent)
    const ended = this.#clock.steady()
    this.#restUntil = ended + Math.min((ended - started) * (SHARE - 1), LONGEST_REST)
  }

  /** The first frames after joining: the reader may have some of them from the log. */
  #first(reader: Reader, start: Start, transient: boolean, frames: readonly RelayFrame[]): View {
    const unseen = frames.filter(({ place }) => place === null || isAfter(place, start))
    if (unseen.some(({ place }) => place !== null)) this.#live.set(reader, null)
    return view(unseen, reader.sessionId, transient)
  }

  #ping(): void {
    for (const reader of this.#readers) if (reader.unread() <= CUT) reader.write(PING)
    this.#pinging = this.#clock.after(PING_EVERY, () => this.#ping())
  }
}

/** The bytes of a batch for each kind of reader, encoded once. */
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

/** The frames of a batch that one kind of reader gets. */
interface View {
  bytes: Buffer
  /** The number of frames. */
  count: number
}

function view(frames: readonly RelayFrame[], sessionId: string | null, transient: boolean): View {
  const wanted = frames
    .filter((frame) => sessionId === null || frame.sessionId === sessionId)
    .filter(({ place }) => transient || place !== null)
    .map(({ bytes }) => bytes)
  return { bytes: Buffer.concat(wanted), count: wanted.length }
}

function isAfter(place: { pos: number; seq: string }, { pos, seq }: Start): boolean {
  return place.pos > pos && (seq === null || isBefore(seq, place.seq))
}
