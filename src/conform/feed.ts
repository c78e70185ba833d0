import { createParser } from 'eventsource-parser'
import { messageOf } from '../std/errors.ts'
import { retryAfter } from '../std/retry-after.ts'
import type { Deployment } from './deployment.ts'
import { at } from './kind.ts'
import type { Reply } from './reply.ts'
import { Stuck } from './stuck.ts'

/** One frame of an event stream. */
export interface Frame {
  readonly event: string | undefined
  /** The `id:` line of this frame itself; that of an earlier frame does not count. */
  readonly id: string | undefined
  readonly text: string
  /** The `data:` as JSON; undefined when it is not JSON. */
  readonly data: unknown
}

/** The most frames that are kept, and characters of one frame: a busy organization sends more than a run needs. */
const FRAMES_KEPT = 20_000
const LONGEST_FRAME = 4 * 1024 * 1024
const OPEN_TIMEOUT = 30_000
/** The number of attempts to open a stream while all stream slots are in use. */
const ATTEMPTS = 6
/** Milliseconds between two checks of the received frames. */
const GLANCE = 10

interface Opening {
  query?: Record<string, string>
  headers?: Record<string, string>
}

/** An open event stream and its frames. */
export class Feed {
  readonly reply: Reply
  readonly frames: Frame[] = []
  readonly comments: { text: string; at: number }[] = []
  /** The `retry:` hint, milliseconds. */
  retry: number | null = null
  readonly openedAt = performance.now()
  ended = false
  readonly #deployment: Deployment
  readonly #controller: AbortController

  private constructor(deployment: Deployment, reply: Reply, controller: AbortController) {
    this.#deployment = deployment
    this.reply = reply
    this.#controller = controller
  }

  /**
   * Opens the stream at `path`; waits for a free slot if there is none.
   * @throws {Stuck} when it is not opened with 200.
   */
  static async open(deployment: Deployment, path: string, asking: Opening = {}): Promise<Feed> {
    for (let attempt = 1; ; attempt++) {
      if (deployment.signal.aborted) throw new Stuck('the run was ended')
      const feed = await Feed.#try(deployment, path, asking)
      const { status, headers } = feed.reply
      if (status === 200) return feed
      if (status !== 429 || attempt === ATTEMPTS) throw new Stuck(`GET ${path} answered ${status}`)
      // A stream that was just closed still holds its slot for some seconds.
      await deployment.pause(Math.min(retryAfter(headers['retry-after'], Date.now()) || 5000, 30_000))
    }
  }

  static async #try(deployment: Deployment, path: string, asking: Opening): Promise<Feed> {
    const controller = new AbortController()
    const url = deployment.url(path, asking.query)
    const headers = { accept: 'text/event-stream', ...asking.headers }
    const authorization = `Bearer ${deployment.token}`
    try {
      const { status, ...stream } = await deployment.http.open({
        url,
        headers: { ...headers, authorization },
        timeout: OPEN_TIMEOUT,
        signal: controller.signal,
      })
      const sent = { method: 'GET', url, headers, body: null, authenticated: true } as const
      const reply = { sent, status, headers: stream.headers, text: '', json: undefined }
      const feed = new Feed(deployment, reply, controller)
      if (status === 200) void feed.#read(stream.chunks)
      else controller.abort()
      return feed
    } catch (error) {
      throw new Stuck(`GET ${path} got no answer: ${messageOf(error)}`)
    }
  }

  close(): void {
    this.#controller.abort()
  }

  /**
   * Frames whose data contains `sessionId` in any field: the interface does not specify the field.
   */
  of(sessionId: string): Frame[] {
    return this.frames.filter(({ text }) => text.includes(sessionId))
  }

  /** Waits until `find` returns a value; null after `ms`. */
  async until<T>(find: () => T | undefined, ms: number): Promise<T | null> {
    const limit = performance.now() + ms
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      if (performance.now() > limit) return null
      await this.#deployment.pause(GLANCE)
    }
  }

  async #read(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    const parser = createParser({
      onEvent: ({ event, id, data }) => {
        this.frames.push({ event, id, text: data, data: parse(data) })
        if (this.frames.length > FRAMES_KEPT) this.frames.shift()
      },
      onComment: (text) => {
        this.comments.push({ text, at: performance.now() })
      },
      onRetry: (ms) => {
        this.retry ??= ms
      },
      maxBufferSize: LONGEST_FRAME,
    })
    try {
      for await (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
    } catch {
      // The stream was cut by us or by the deployment; the received frames are kept.
    } finally {
      this.ended = true
      this.#controller.abort()
    }
  }
}

export function typeOf(frame: Frame): string {
  const type = at(frame.data, 'type')
  return typeof type === 'string' ? type : ''
}

export function seqOf(frame: Frame): unknown {
  return at(frame.data, 'seq')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
