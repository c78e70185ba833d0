import type { Agenda } from '../agenda.ts'
import type { Sites } from '../sites.ts'
import type { Slots } from './slots.ts'
import type { ServiceState } from './state.ts'

const PING = 15_000
/** How far back a repetition goes. */
const REPEATED = 3
/** Milliseconds. */
const REPEATED_AFTER = 100
/** For so long only pings come, before the first frame and later: never two between frames of a replay. Milliseconds. */
const PAUSE = { first: 40_000, later: 16_000 }

/** The sidecar's end of a connection. */
export interface Pipe {
  push(text: string): void
  /** `clean`: the service closed it; otherwise it broke. */
  end(clean: boolean): void
  /** Its process is no more: the kernel has closed the connection. */
  gone(): boolean
}

/** What is to be sent: a frame, or that the replay stops here. */
type Sent = { frame: string; seq: number | null } | 'stop'

interface Reader {
  pipe: Pipe
  open: boolean
  stalled: boolean
  /** What waits for the end of a pause; null: there is none. */
  held: Sent[] | null
  /** After a pause a frame comes before the next one. */
  rested: boolean
  /** Its last frames, the newest last. */
  sent: string[]
  lastSeq: number
  /** Where it began; null until a live reader got its first frame. */
  from: number | null
}

/** The organization-wide event stream. */
export class EventStream {
  readonly #agenda: Agenda
  readonly #state: ServiceState
  readonly #sites: Sites
  readonly #replayMax: number
  readonly #slots: Slots
  readonly #readers = new Set<Reader>()
  #stopped = false
  /** True time of the last connection that did not go on with a replay: its reader looks at everything anew. */
  freshAt = -Infinity

  constructor(parts: { agenda: Agenda; state: ServiceState; sites: Sites; slots: Slots; replayMax: number }) {
    const { agenda, state, sites, slots, replayMax } = parts
    this.#slots = slots
    this.#agenda = agenda
    this.#state = state
    this.#sites = sites
    this.#replayMax = replayMax
    state.onFrame = (frame, seq) => {
      for (const reader of this.#readers) this.#send(reader, { frame, seq })
    }
  }

  /** @returns how the client ends it. */
  open(cursor: string | null, pipe: Pipe): () => void {
    const reader: Reader = {
      pipe,
      open: true,
      stalled: false,
      held: null,
      rested: false,
      sent: [],
      lastSeq: Number(cursor ?? 0),
      from: cursor === null ? null : Number(cursor),
    }
    this.#slots.take()
    if (!this.#stopped) this.freshAt = this.#agenda.now
    this.#stopped = false
    const { retry } = this.#state.details
    pipe.push(retry === null ? ': hello\n\n' : `retry: ${retry}\n\n`)
    if (cursor !== null) {
      const missed = this.#state.events.filter(({ seq }) => seq > Number(cursor))
      for (const event of missed.slice(0, this.#replayMax)) this.#send(reader, event)
      if (missed.length > this.#replayMax) this.#send(reader, 'stop')
    }
    if (reader.open) {
      this.#readers.add(reader)
      this.#ping(reader)
    }
    return () => this.#leave(reader, false)
  }

  /** Everybody's connection breaks. */
  breakAll(): void {
    for (const reader of this.#readers) this.#end(reader, false)
  }

  get readers(): number {
    return this.#readers.size
  }

  /** A reader waits for the end of a pause. */
  get pauses(): boolean {
    return [...this.#readers].some(({ held }) => held !== null)
  }

  #ping(reader: Reader): void {
    this.#agenda.in(PING, () => {
      if (!reader.open) return
      if (!reader.stalled) reader.pipe.push(': ping\n\n')
      else if (reader.pipe.gone()) return this.#leave(reader, false)
      this.#ping(reader)
    })
  }

  #send(reader: Reader, sent: Sent): void {
    if (!reader.open || reader.stalled) return
    if (reader.held !== null) {
      reader.held.push(sent)
      return
    }
    if (sent === 'stop') return this.#stop(reader, reader.lastSeq)
    const { frame, seq } = sent
    const fault = this.#sites.pass('stream frame', 'before', [
      'cut',
      'half',
      'stall',
      'repeat',
      'replay_stop',
      ...(reader.rested ? [] : (['pause'] as const)),
    ])
    reader.rested = false
    if (fault === 'cut') return this.#end(reader, false)
    if (fault === 'stall') {
      reader.stalled = true
      return
    }
    if (fault === 'pause') {
      reader.held = [sent]
      this.#agenda.in(reader.sent.length === 0 ? PAUSE.first : PAUSE.later, () => this.#goOn(reader))
      return
    }
    if (fault === 'half') {
      reader.pipe.push(frame.slice(0, Math.floor(frame.length / 2)))
      return this.#end(reader, false)
    }
    if (fault === 'replay_stop') {
      // It may lie before what was sent.
      return this.#stop(reader, Math.max(reader.from ?? reader.lastSeq, reader.lastSeq - REPEATED))
    }
    if (fault === 'repeat') {
      // Together with the new events, and after them.
      const again = reader.sent.join('')
      reader.pipe.push(again)
      this.#agenda.in(REPEATED_AFTER, () => {
        if (reader.open && !reader.stalled && reader.held === null) reader.pipe.push(again)
      })
    }
    reader.pipe.push(frame)
    if (seq !== null) {
      reader.sent = [...reader.sent, frame].slice(-REPEATED)
      reader.lastSeq = seq
      reader.from ??= seq
    }
  }

  #goOn(reader: Reader): void {
    const held = reader.held ?? []
    reader.held = null
    reader.rested = true
    for (const sent of held) this.#send(reader, sent)
  }

  #stop(reader: Reader, fromSeq: number): void {
    this.#stopped = true
    reader.pipe.push(this.#state.stopFrame(fromSeq))
    this.#leave(reader, true)
    reader.pipe.end(true)
  }

  #end(reader: Reader, clean: boolean): void {
    this.#leave(reader, false)
    reader.pipe.end(clean)
  }

  #leave(reader: Reader, stopped: boolean): void {
    if (!reader.open) return
    reader.open = false
    this.#readers.delete(reader)
    this.#slots.leave(stopped)
  }
}
