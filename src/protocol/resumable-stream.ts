import type { Clock } from '../std/ports.ts'
import { StreamConnection, type ConnectionEnd } from './connection.ts'
import type { Frame } from './frame.ts'
import { ReconnectPolicy, type Brought, type ReconnectPorts } from './reconnect-policy.ts'
import { ResumePoint } from './resume-point.ts'

/** How the next connection is opened, and who gets its frames. */
export interface ConnectOptions {
  /** The last seq that was kept; null: none was. */
  last: string | null
  /** The first seq to request; earlier ones are skipped. null: no limit. */
  first?: string | null
  /** The cursor for a connection that has no other cursor yet; null: live frames only. */
  start?: string | null
  /** Ends the connection. */
  abort: AbortController
  /** @throws the reason of a refusal. */
  open: (cursor: string | null, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>
  /** @returns the `from_seq` of a frame that says that the replay stopped; null for any other. */
  onFrame: (frame: Frame) => string | null
  onPing?: () => void
}

/**
 * One stream over as many connections as it needs. Each connection continues after the last seq that was kept. The
 * wait before it depends on the service's `retry:`, the stream slots and the failures so far. The sidecar uses it for
 * the organization-wide stream, and the client for the streams of its users.
 */
export class ResumableStream {
  readonly #clock: Clock
  readonly #policy: ReconnectPolicy
  readonly #point = new ResumePoint()

  constructor(ports: ReconnectPorts) {
    this.#clock = ports.clock
    this.#policy = new ReconnectPolicy(ports)
  }

  /** The position from which the rest of a stopped replay must still be requested. */
  get stoppedAt(): string | null {
    return this.#point.stoppedAt
  }

  /** Opens the next connection. @throws what `open` throws. */
  async connect(options: ConnectOptions): Promise<{ connection: StreamConnection; cursor: string | null }> {
    const { last, first = null, start = null, abort, open, onFrame, onPing } = options
    const cursor = this.#point.next(last, first) ?? start
    let chunks: AsyncIterable<Uint8Array>
    try {
      chunks = await open(cursor, abort.signal)
    } catch (error) {
      this.#point.refused()
      throw error
    }
    this.#policy.opened()
    const listener = {
      onFrame,
      onStop: (from: string) => this.#point.stopAt(from),
      onRetry: (ms: number) => this.#policy.retry(ms),
      onPing: onPing ?? (() => undefined),
    }
    return { connection: new StreamConnection(chunks, abort, listener, this.#clock), cursor }
  }

  /** The connection ended without a failure. @returns milliseconds to wait before the next. */
  ended(how: ConnectionEnd, brought: Brought): number {
    return how === 'closed' ? this.#policy.closed(brought) : this.#policy.stopped(brought)
  }

  /** The connection was refused, or broke. @returns milliseconds to wait before the next. */
  broken(error: unknown, anything: boolean): number {
    return this.#policy.broken(error, { anything })
  }

  /** A step before the connection failed, such as reading the cursor. @returns milliseconds to wait. */
  failed(): number {
    return this.#policy.failed()
  }

  /** We closed the connection. */
  left(): void {
    this.#policy.left()
  }

  /** The rest of a stopped replay is no longer needed, or a replay from the beginning contains it. */
  forget(): void {
    this.#point.forget()
  }
}
