import { createParser } from 'eventsource-parser'
import { request } from 'undici'
import { until } from '../support/until.ts'

export interface Frame {
  event: string | undefined
  id: string | undefined
  data: string
}

/** A client that is only a parser of event streams. */
export class EventReader implements AsyncDisposable {
  readonly frames: Frame[] = []
  readonly comments: string[] = []
  retry: number | null = null
  ended = false
  readonly #abort = new AbortController()

  /** @throws {Error} with the status, when the answer is no stream. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
    const reader = new EventReader()
    const { statusCode, body } = await request(url, { headers, signal: reader.#abort.signal, bodyTimeout: 0 })
    if (statusCode !== 200) throw new Error(`${statusCode} ${await body.text()}`)
    const parser = createParser({
      onEvent: ({ event, id, data }) => void reader.frames.push({ event, id, data }),
      onRetry: (ms) => (reader.retry = ms),
      onComment: (comment) => void reader.comments.push(comment),
    })
    body.on('data', (chunk: Buffer) => parser.feed(chunk.toString('utf8')))
    body.on('error', () => (reader.ended = true))
    body.on('end', () => (reader.ended = true))
    return reader
  }

  get ids(): (string | undefined)[] {
    return this.frames.map(({ id }) => id)
  }

  async has(count: number): Promise<readonly Frame[]> {
    await until(`${count} frames`, () => this.frames.length >= count)
    return this.frames
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    await until('end of the stream', () => this.ended)
  }
}
