import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'
import { ServiceError } from '../core/errors.ts'
import { readFrame } from './event.ts'
import type { StreamEvent } from './event.ts'

/** One frame, characters. The service's largest body is 16 MiB. */
const FRAME_MAX = 16 * 1024 * 1024

/** Makes events of the bytes of one connection. */
export class FrameReader {
  readonly #parser: EventSourceParser
  readonly #decoder = new TextDecoder()
  #events: StreamEvent[] = []
  #stop: string | null = null
  #overlong = false

  /** `onRetry` is told the service's `retry:`, milliseconds. */
  constructor(onRetry: (ms: number) => void) {
    this.#parser = createParser({
      maxBufferSize: FRAME_MAX,
      onRetry,
      onEvent: (frame) => {
        if (this.#stop !== null) return
        const read = readFrame(frame)
        if ('stop' in read) this.#stop = read.stop
        else this.#events.push(read.event)
      },
      onError: ({ type }) => {
        this.#overlong ||= type === 'max-buffer-size-exceeded'
      },
    })
  }

  /**
   * The events that became whole with this chunk. `stop`: the replay reached its limit, nothing comes after.
   * @throws {ServiceError} `malformed_answer` for a frame without end.
   */
  read(chunk: Uint8Array): { events: StreamEvent[]; stop: string | null } {
    this.#parser.feed(this.#decoder.decode(chunk, { stream: true }))
    const message = `a frame is longer than ${FRAME_MAX} characters`
    if (this.#overlong) throw new ServiceError({ code: 'malformed_answer', status: 200, message })
    const events = this.#events
    this.#events = []
    return { events, stop: this.#stop }
  }
}
