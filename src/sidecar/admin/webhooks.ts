import type { IncomingMessage, ServerResponse } from 'node:http'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { messageOf } from '../../std/errors.ts'
import type { Observer } from '../../core/observer.ts'
import type { WebhookAnswer, WebhookDelivery, WebhookHead } from '../../core/webhook.ts'
import type { Log } from '../../std/ports.ts'
import { BodyReader, createListener, DirectRequest, STEADY, type Listener } from './listener.ts'

export interface WebhookListenerOptions {
  listen: { host: string; port: number }
  path: string
  /**
   * The answer to a delivery that is refused by its headers alone; null when its body must be read.
   */
  screen: (head: WebhookHead) => WebhookAnswer | null
  /** Verifies and stores; `answer` is called once, with 200 only once the hint is durable. */
  receive: (delivery: WebhookDelivery, answer: (given: WebhookAnswer) => void) => void
  /** Counts deliveries that never reached `receive`. */
  observer?: Pick<Observer, 'webhook'>
  log: Log
  /** Milliseconds until the headers are complete, and until the whole request is. */
  times?: { headers: number; request: number; checkedEvery?: number }
  /** Connections at once; default 256. */
  connections?: number
}

/** Bytes of a delivery (src/sidecar/README.md, Limits). */
const BODY = 1024 * 1024
/** Bytes of all headers: a sender and the proxies before it need two or three thousand. */
const HEADERS = 8 * 1024
/**
 * Milliseconds that an idle connection is kept: longer than the 60 s of common proxies, because the
 * proxy must close first.
 */
const KEEP_ALIVE = 65_000
/** More connections than one service opens. Each holds at most one body. */
const CONNECTIONS = 256
/** Bytes that all bodies over 64 KiB share while they are read. Those of the service hold ids and have some hundred bytes. */
const SHARED = 4 * BODY
/** The service waits 10 s for a receiver: a slower request was given up by its sender. */
const TIMES = { headers: 5_000, request: 10_000 }

const BODIES = {
  200: '{"received":true}',
  401: '{"received":false,"reason":"the signature or the timestamp is missing, malformed, wrong or stale"}',
  404: '{"received":false,"reason":"not found"}',
  405: '{"received":false,"reason":"method not allowed"}',
  413: '{"received":false,"reason":"a delivery has at most 1048576 bytes, and 65536 without a content-length"}',
  415: '{"received":false,"reason":"no content-encoding is accepted"}',
  400: '{"received":false,"reason":"bad request"}',
  503: '{"received":false,"reason":"try again later"}',
} as const
type Status = keyof typeof BODIES
const NOTHING = Buffer.alloc(0)

/** The public listener for webhooks: accepts POSTs to one path, and passes on their raw bytes. */
export function createWebhookListener(options: WebhookListenerOptions): Listener {
  const { path, screen, receive, observer, log, connections = CONNECTIONS } = options
  const bodies = new BodyReader(SHARED)
  const logThrottled = createThrottledLog(STEADY, (times) =>
    log.warn(
      { times },
      'webhooks: too many long bodies were being read; deliveries over 64 KiB were answered 503',
    ),
  )
  /** The body is not read to its end: 100 MB that arrive at once would need 40 MB of buffers even to discard them. */
  const refuseBody = (response: ServerResponse, status: 400 | 413 | 503): void => {
    if (status === 413) observer?.webhook('too_large')
    if (status === 503) {
      observer?.webhook('busy')
      logThrottled()
    }
    refuse(response, status)
  }
  const fail = (response: ServerResponse, error: unknown): void => {
    log.error(
      { reason: messageOf(error) },
      'webhooks: a delivery could not be accepted; the service sends it again',
    )
    refuse(response, 503)
  }
  const take = (request: DirectRequest, response: ServerResponse): void => {
    const misplaced = refusalOf(request, path)
    if (misplaced !== null) return refuse(response, misplaced)
    const refused = bodies.refusalOf(request, BODY)
    // A body that is too long gets 413 whatever its headers are. A lack of memory is shown only to a sender with
    // plausible headers.
    if (refused?.statusCode === 413) return refuseBody(response, 413)
    const head = headOf(request)
    const condemned = screen(head)
    if (condemned !== null) return refuse(response, condemned.status)
    if (refused !== null) return refuseBody(response, refused.statusCode)
    bodies.read(request, BODY, (error, body = NOTHING) => {
      if (error !== null) return refuseBody(response, error.statusCode)
      const delivery = { signature: head.signature, timestamp: head.timestamp, body }
      try {
        // A sender with a valid signature keeps its connection.
        receive(delivery, ({ status }) => (status === 401 ? refuse : answer)(response, status))
      } catch (error) {
        fail(response, error)
      }
    })
  }
  return createListener({
    IncomingMessage: DirectRequest,
    listen: options.listen,
    headers: HEADERS,
    times: { ...(options.times ?? TIMES), idle: KEEP_ALIVE },
    connections: {
      limit: connections,
      onEvicted: createThrottledLog(STEADY, (times) =>
        log.warn(
          { times, connections },
          'webhooks: all connections were in use; those that were idle for longest were closed for new ones',
        ),
      ),
      onRefused: createThrottledLog(STEADY, (times) =>
        log.warn({ times, connections }, 'webhooks: all connections are being served; new ones were closed'),
      ),
    },
    serve(request, response) {
      try {
        take(request, response)
      } catch (error) {
        fail(response, error)
      }
    },
  })
}

function refusalOf({ url, method, headers }: IncomingMessage, path: string): 404 | 405 | 415 | null {
  if (url !== path && url?.split('?', 1)[0] !== path) return 404
  if (method !== 'POST') return 405
  const encoding = headers['content-encoding']
  return encoding === undefined || encoding.toLowerCase() === 'identity' ? null : 415
}

function headOf({ headers }: IncomingMessage): WebhookHead {
  return {
    signature: single(headers['x-service-signature']),
    timestamp: single(headers['x-service-timestamp']),
  }
}

/** Node joins a repeated header with a comma, which no valid value of ours contains. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && !value.includes(',') ? value : undefined
}

function headersOf(text: string): string[] {
  return ['content-type', 'application/json', 'content-length', String(text.length)]
}

/** Headers and body leave in one write. */
function answer(response: ServerResponse, status: Status, headers = headersOf(BODIES[status])): void {
  if (!response.headersSent) response.writeHead(status, headers).end(BODIES[status], 'latin1')
}

/** Answers, and closes the connection. */
function refuse(response: ServerResponse, status: Status): void {
  const headers = [...headersOf(BODIES[status]), 'connection', 'close']
  if (status === 405) headers.push('allow', 'POST')
  answer(response, status, headers)
}
