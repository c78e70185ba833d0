import type { ServerResponse } from 'node:http'
import type { Event } from './event.ts'
import type { Faults } from './fault.ts'
import { encodeFrame } from './frame.ts'
import type { Limits } from './limits.ts'
import type { EventLog } from './log.ts'
import type { OpenDetails } from './profile/details.ts'

/** Events encoded for one write of a replay. */
const REPLAY_BATCH = 256

interface Parts {
  response: ServerResponse
  limits: Limits
  details: OpenDetails
  log: EventLog
  faults: Faults
  sessionId: string | null
}

/**
 * One open stream. It is `replaying` (reading the log at the client's pace), `live` (frames wait in a batch for the
 * next flush) or `stopped` (the replay reached its limit and nothing but pings follows).
 */
export class Reader {
  readonly #parts: Parts
  #state: 'replaying' | 'live' | 'stopped' | 'closed' = 'live'
  #batch: Buffer[] = []
  #batchBytes = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get sessionId(): string | null {
    return this.#parts.sessionId
  }

  /** Bytes that the client has not taken yet. */
  get unread(): number {
    return this.#batchBytes + this.#parts.response.writableLength
  }

  /** `after`: the seq to replay from, undefined for live frames only. */
  start(after: number | undefined): void {
    this.#parts.response.write(`retry: ${this.#parts.limits.retryMs}\n\n`)
    if (after === undefined) return
    this.#state = 'replaying'
    // A client that leaves in the middle only ends its own replay.
    this.#replay(after).catch(() => this.cut())
  }

  wants(event: Event): boolean {
    if (this.#state !== 'live') return false
    return this.sessionId === null || this.sessionId === event.sessionId
  }

  /** Past one ceiling of unread bytes a transient frame is dropped, past the other the connection is closed. */
  push(frame: Buffer, seq: number | null): void {
    const { limits } = this.#parts
    const unread = this.unread
    if (seq === null && unread > limits.dropTransientBytes) return
    if (unread > limits.closeStreamBytes) return this.cut()
    this.#batch.push(frame)
    this.#batchBytes += frame.length
  }

  flush(): void {
    if (this.#batch.length === 0 || this.#parts.faults.on('stall_streams')) return
    const [first] = this.#batch
    const bytes = this.#batch.length === 1 && first !== undefined ? first : Buffer.concat(this.#batch)
    this.#batch = []
    this.#batchBytes = 0
    this.#parts.response.write(bytes)
  }

  ping(): void {
    const { faults, response } = this.#parts
    if (this.#state === 'closed' || faults.on('stop_pings') || faults.on('stall_streams')) return
    response.write(': ping\n\n')
  }

  /** Sends what waits and ends the stream. */
  end(): void {
    this.flush()
    this.close()
    this.#parts.response.end()
  }

  /** Closes the connection where it is. */
  cut(): void {
    this.close()
    this.#parts.response.destroy()
  }

  close(): void {
    this.#state = 'closed'
    this.#batch = []
    this.#batchBytes = 0
  }

  async #replay(after: number): Promise<void> {
    const { limits, log } = this.#parts
    let seq = after
    let sent = 0
    while (this.#state === 'replaying') {
      const rows = log.after(seq, REPLAY_BATCH)
      if (rows.length === 0) {
        this.#state = 'live'
        return
      }
      const frames: Buffer[] = []
      for (const event of rows) {
        if (this.sessionId === null || this.sessionId === event.sessionId) {
          if (sent === limits.replayEvents) return this.#stop(frames, seq)
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

  /** Writes and waits until the client has taken it, so that a replay is never a backlog. */
  async #write(bytes: Buffer): Promise<void> {
    const { response } = this.#parts
    while (this.#parts.faults.on('stall_streams') && this.#state === 'replaying') await pause()
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
