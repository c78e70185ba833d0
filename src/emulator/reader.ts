import type { ServerResponse } from 'node:http'
import type { Clock, Timer } from './clock.ts'
import type { Event } from './event.ts'
import type { Faults } from './fault.ts'
import { encodeFrame } from './frame.ts'
import type { Limits } from './limits.ts'
import type { EventLog } from './log.ts'
import type { OpenDetails } from './profile/details.ts'

/** Events encoded for one write of a replay. */
const REPLAY_BATCH = 256
const PING = Buffer.from(': ping\n\n')
/** A slowed stream writes so many times a second. */
const WRITES_PER_SECOND = 20

interface Parts {
  response: ServerResponse
  clock: Clock
  limits: Limits
  details: OpenDetails
  log: EventLog
  faults: Faults
  /** Called before any byte of a replay is sent. */
  save: () => void
  sessionId: string | null
}

/**
 * One open stream:
 * - `replaying`: it reads the log at the client's pace
 * - `live`: frames wait in a batch for the next flush
 * - `stopped`: the replay reached its limit, and only pings follow
 */
export class Reader {
  readonly #parts: Parts
  #state: 'replaying' | 'live' | 'stopped' | 'closed' = 'live'
  #batch: Buffer[] = []
  #batchBytes = 0
  /** Set while a slowed stream waits for its next write. */
  #slowed: Timer | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get sessionId(): string | null {
    return this.#parts.sessionId
  }

  /** Bytes that the client has not received yet. */
  get unread(): number {
    return this.#batchBytes + this.#parts.response.writableLength
  }

  /** `after`: the seq to replay from, undefined for live frames only. */
  start(after: number | undefined): void {
    this.#parts.response.write(`retry: ${this.#parts.limits.retryMs}\n\n`)
    if (after === undefined) return
    this.#state = 'replaying'
    // A client that disconnects during its replay ends only this replay.
    this.#replay(after).catch(() => this.cut())
  }

  wants(event: Event): boolean {
    if (this.#state !== 'live') return false
    return this.sessionId === null || this.sessionId === event.sessionId
  }

  /** Above one limit of unread bytes a transient frame is dropped; above the other the connection is closed. */
  push(frame: Buffer, seq: number | null): void {
    const { limits } = this.#parts
    const unread = this.unread
    if (seq === null && unread > limits.dropTransientBytes) return
    if (unread > limits.closeStreamBytes) return this.cut()
    this.#keep(frame)
  }

  flush(): void {
    const { faults, clock, response } = this.#parts
    if (this.#batch.length === 0 || faults.on('stall_streams')) return
    const rate = faults.streamRate
    if (rate === undefined) return void response.write(this.#takeBatch())
    if (this.#slowed !== undefined) return
    const bytes = this.#takeBatch()
    const most = Math.ceil(rate / WRITES_PER_SECOND)
    response.write(bytes.subarray(0, most))
    if (bytes.length > most) this.#keep(bytes.subarray(most))
    this.#slowed = clock.after(1000 / WRITES_PER_SECOND, () => {
      this.#slowed = undefined
      this.#parts.save()
      this.flush()
    })
  }

  ping(): void {
    const { faults } = this.#parts
    if (this.#state === 'closed' || faults.on('stop_pings') || faults.on('stall_streams')) return
    // The ping is put after the waiting bytes, because a slowed stream may be in the middle of a frame.
    this.#keep(PING)
    this.#parts.save()
    this.flush()
  }

  /** Sends the waiting bytes and ends the stream. */
  end(): void {
    const rest = this.#takeBatch()
    this.close()
    this.#parts.response.end(rest)
  }

  /** Closes the connection at once. */
  cut(): void {
    this.close()
    this.#parts.response.destroy()
  }

  close(): void {
    this.#state = 'closed'
    this.#slowed?.cancel()
    this.#takeBatch()
  }

  #keep(bytes: Buffer): void {
    this.#batch.push(bytes)
    this.#batchBytes += bytes.length
  }

  /** Returns the waiting bytes in one piece and clears them. */
  #takeBatch(): Buffer {
    const [first] = this.#batch
    const bytes = this.#batch.length === 1 && first !== undefined ? first : Buffer.concat(this.#batch)
    this.#batch = []
    this.#batchBytes = 0
    return bytes
  }

  async #replay(after: number): Promise<void> {
    const { limits, faults, log, save } = this.#parts
    const most = faults.replayWindow ?? limits.replayEvents
    let seq = after
    let sent = 0
    while (this.#state === 'replaying') {
      save()
      const rows = log.after(seq, REPLAY_BATCH)
      if (rows.length === 0) {
        this.#state = 'live'
        return
      }
      const frames: Buffer[] = []
      for (const event of rows) {
        if (this.sessionId === null || this.sessionId === event.sessionId) {
          if (sent === most) return this.#stop(frames, seq)
          frames.push(encodeFrame(this.#parts.details, event))
          sent += 1
        }
        seq = event.seq
      }
      await this.#write(Buffer.concat(frames))
    }
  }

  #stop(frames: readonly Buffer[], seq: number): void {
    const { stop } = this.#parts.details.stream
    const data = JSON.stringify(stop.data(seq))
    this.#parts.response.write(
      Buffer.concat([...frames, Buffer.from(`event: ${stop.name}\ndata: ${data}\n\n`)]),
    )
    this.#state = 'stopped'
    if (stop.closes) this.end()
  }

  /** Writes `bytes` and waits until the client has received them, so that a replay never builds a backlog. */
  async #write(bytes: Buffer): Promise<void> {
    const { response, faults } = this.#parts
    if (faults.on('stall_streams') || faults.streamRate !== undefined) {
      this.#keep(bytes)
      this.flush()
      while (this.#batchBytes > 0 && this.#state === 'replaying') await pause()
      return
    }
    if (this.#state !== 'replaying' || response.write(bytes)) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        response.off('drain', done)
        response.off('close', done)
        resolve()
      }
      response.on('drain', done)
      response.on('close', done)
    })
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 20))
}
