import { get, type IncomingMessage } from 'node:http'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import { until, type Bench, type Fields } from './support.ts'

export interface Frame {
  event: string
  id: string | undefined
  data: Fields
}

/** A client of an event stream that keeps what it hears. */
export interface Listener {
  readonly response: IncomingMessage
  readonly frames: Frame[]
  readonly comments: string[]
  retry: number | undefined
  /** Raw text as it came. */
  text: string
  closed: boolean
  leave(): void
  /** Waits for a frame with this event name. */
  hear(event: string): Promise<Frame>
}

/** Opens a stream; resolves with its first bytes, or with the refusal's response as it is. */
export async function listen(
  bench: Bench,
  path = '/v1/events',
  headers: Record<string, string> = {},
): Promise<Listener> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(
      bench.emulator.baseUrl + path,
      { headers: { authorization: `Bearer ${bench.token}`, ...headers }, agent: false },
      resolve,
    ).on('error', reject)
  })
  const listener: Listener = {
    response,
    frames: [],
    comments: [],
    retry: undefined,
    text: '',
    closed: false,
    leave: () => void response.destroy(),
    hear: (event) => until(() => listener.frames.find((frame) => frame.event === event)),
  }
  const parser = createParser({
    onEvent: ({ event = '', id, data }: EventSourceMessage) =>
      listener.frames.push({ event, id, data: JSON.parse(data) as Fields }),
    onComment: (comment) => listener.comments.push(comment),
    onRetry: (ms) => {
      listener.retry = ms
    },
  })
  response.setEncoding('utf8')
  response.on('data', (text: string) => {
    listener.text += text
    parser.feed(text)
  })
  response.on('error', () => undefined)
  response.on('close', () => {
    listener.closed = true
  })
  onTestFinished(() => listener.leave())
  if (response.statusCode === 200) await until(() => (listener.retry === undefined ? undefined : true))
  return listener
}
