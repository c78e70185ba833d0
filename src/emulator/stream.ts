import type { ServerResponse } from 'node:http'
import { setImmediate as nextLoop, setTimeout as pause } from 'node:timers/promises'
import type { Clock } from './clock.ts'
import type { Event } from './event.ts'
import type { Faults } from './fault.ts'
import { encodeFrame } from './frame.ts'
import type { Limits } from './limits.ts'
import type { EventLog } from './log.ts'
import type { OpenDetails } from './profile/details.ts'
import { Reader } from './reader.ts'
import { Refusal, refuse } from './refusal.ts'

/** Longest that a burst waits for its slowest reader between two chunks, in real milliseconds. */
const PATIENCE_MS = 250

interface StreamRequest {
  tokenId: string
  /** Null for the whole organization. */
  sessionId: string | null
  /** As it was sent; undefined for live frames only. */
  cursor: string | undefined
  response: ServerResponse
  headers: Readonly<Record<string, string>>
}

interface Parts {
  clock: Clock
  limits: Limits
  faults: Faults
  details: OpenDetails
  log: EventLog
  /** Called before any byte is sent. */
  save: () => void
}

/** All open event streams and their slots; sends each event to all of them. */
export class Streams {
  readonly #parts: Parts
  readonly #readers = new Set<Reader>()
  /** Slots in use by token, those of clients that just left included. */
  readonly #slots = new Map<string, number>()
  #slotsInUse = 0
  #flushing = false

  constructor(parts: Parts) {
    this.#parts = parts
    // After a stall the held bytes are sent.
    parts.faults.onChange(() => this.#flushSoon())
  }

  get size(): number {
    return this.#readers.size
  }

  /**
   * Opens a stream on `response`.
   * @throws {Refusal} 429 before anything is written, when a cap is reached.
   */
  open(request: StreamRequest): void {
    const { limits, faults, clock, details, log, save } = this.#parts
    const held = this.#slots.get(request.tokenId) ?? 0
    const most = faults.streamSlots ?? limits.streamsPerToken
    const full = held >= most || this.#slotsInUse >= limits.streamsPerOrganization
    if (full || faults.use('refuse_streams')) throw this.#refusal()
    this.#take(request.tokenId)

    const { response } = request
    response.writeHead(200, {
      ...request.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    })
    const reader = new Reader({
      response,
      clock,
      limits,
      details,
      log,
      faults,
      save,
      sessionId: request.sessionId,
    })
    this.#readers.add(reader)
    const ping = clock.every(limits.pingMs, () => reader.ping())
    // A write fails if the client has just left: the emulator continues.
    response.on('error', () => reader.cut())
    response.once('close', () => {
      ping.cancel()
      reader.close()
      this.#readers.delete(reader)
      clock.after(limits.streamSlotMs, () => this.#release(request.tokenId))
    })
    reader.start(this.#place(request.cursor))
  }

  /** Sends an event to every stream that it belongs on. */
  deliver(event: Event): void {
    if (this.#readers.size === 0) return
    let frame: Buffer | undefined
    for (const reader of this.#readers) {
      if (!reader.wants(event)) continue
      frame ??= encodeFrame(this.#parts.details, event)
      reader.push(frame, event.seq)
    }
    if (frame !== undefined) this.#flushSoon()
  }

  /** Resolves when no reader has more unread bytes than half of the limit for transient frames, or after 250 ms. */
  async room(): Promise<void> {
    const patience = performance.now() + PATIENCE_MS
    const half = this.#parts.limits.dropTransientBytes / 2
    await nextLoop()
    while (performance.now() < patience && [...this.#readers].some((reader) => reader.unread > half))
      await pause(2)
  }

  /** Ends the streams of a deleted session. */
  endSession(sessionId: string): void {
    this.#parts.save()
    for (const reader of this.#readers) if (reader.sessionId === sessionId) reader.end()
  }

  /** Cuts every connection at once. */
  dropAll(): void {
    for (const reader of this.#readers) reader.cut()
  }

  /** A replay starts after this `seq`; undefined for live frames only. */
  #place(cursor: string | undefined): number | undefined {
    if (cursor === undefined) return undefined
    const { log, details, faults } = this.#parts
    if (cursor === '0') return 0
    const seq = /^\d{1,15}$/.test(cursor) ? Number(cursor) : undefined
    const placed = seq !== undefined && log.at(seq) !== undefined && !faults.on('lose_cursors')
    if (placed) return seq
    return details.stream.unplacedCursor === 'everything' ? 0 : undefined
  }

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#parts.save()
      for (const reader of this.#readers) reader.flush()
    })
  }

  #take(tokenId: string): void {
    this.#slots.set(tokenId, (this.#slots.get(tokenId) ?? 0) + 1)
    this.#slotsInUse += 1
  }

  #release(tokenId: string): void {
    this.#slots.set(tokenId, (this.#slots.get(tokenId) ?? 1) - 1)
    this.#slotsInUse -= 1
  }

  #refusal(): Refusal {
    const seconds = String(Math.ceil(this.#parts.limits.streamSlotMs / 1000))
    return refuse('rate_limit_exceeded', 'too many event streams are open', { 'retry-after': seconds })
  }
}
