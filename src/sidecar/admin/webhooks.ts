import type { IncomingMessage } from 'node:http'
import { fastify, type FastifyReply, type FastifyRequest } from 'fastify'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { messageOf } from '../../std/errors.ts'
import type { Observer, WebhookOutcome } from '../../core/observer.ts'
import type { Log } from '../../std/ports.ts'
import { BodyReader, BodyRefused, type BodyDone } from './body.ts'
import { keepConnections } from './connections.ts'
import { CHECKED_EVERY, open, refuseConnection, STEADY, type Listener } from './listener.ts'

/** The headers of a delivery; undefined when one is missing or came more than once. */
export interface WebhookHead {
  signature: string | undefined
  timestamp: string | undefined
}

/** A received delivery, not verified. */
export interface WebhookDelivery extends WebhookHead {
  body: Buffer
}

interface WebhookAnswer {
  status: 200 | 401 | 503
  outcome: WebhookOutcome
}

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
  /** Milliseconds until the headers, and the whole request, must be complete. */
  times?: { headers: number; request: number; checkedEvery: number }
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
/** More than one service opens; each holds at most one body. */
const CONNECTIONS = 256
/** Bytes that all bodies over 64 KiB share while they are read. Those of the service hold ids and have some hundred bytes. */
const SHARED = 4 * BODY
/** The service waits 10 s for a receiver: a slower request was given up by its sender. */
const TIMES = { headers: 5_000, request: 10_000, checkedEvery: CHECKED_EVERY }

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

/** The public listener for webhooks: accepts POSTs to one path, and passes on their raw bytes. */
export function createWebhookListener(options: WebhookListenerOptions): Listener {
  const { path, screen, receive, observer, log, connections = CONNECTIONS } = options
  const times = options.times ?? TIMES
  const bodies = new BodyReader(SHARED)
  const app = fastify({
    bodyLimit: BODY,
    requestTimeout: times.request,
    // Milliseconds for a socket without any data; the limits above are for slow data.
    connectionTimeout: KEEP_ALIVE,
    keepAliveTimeout: KEEP_ALIVE,
    exposeHeadRoutes: false,
    http: {
      maxHeaderSize: HEADERS,
      headersTimeout: times.headers,
      connectionsCheckingInterval: times.checkedEvery,
    },
    clientErrorHandler: (error, socket) => refuseConnection(error, socket),
    frameworkErrors: (_error, _request, reply) => void answer(reply, 400),
  })
  const close = keepConnections(app, {
    limit: connections,
    onEvicted: createThrottledLog(STEADY, (times) =>
      log.warn(
        { times, connections },
        'webhooks: all connections were in use; the longest without a request were closed for new ones',
      ),
    ),
    onRefused: createThrottledLog(STEADY, (times) =>
      log.warn({ times, connections }, 'webhooks: all connections are being served; new ones were closed'),
    ),
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request: FastifyRequest, payload: IncomingMessage, done: BodyDone) =>
    bodies.read(payload, BODY, done),
  )

  const logThrottled = createThrottledLog(STEADY, (times) =>
    log.warn(
      { times },
      'webhooks: too many long bodies were being read; deliveries over 64 KiB were answered 503',
    ),
  )
  const report = (refusal: number): void => {
    if (refusal === 413) observer?.webhook('too_large')
    if (refusal !== 503) return
    observer?.webhook('busy')
    logThrottled()
  }

  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    const body = bodies.refusalOf(raw, BODY)?.statusCode
    // 413 with or without valid headers; 503 for a lack of memory only where the headers are plausible.
    const refusal =
      refusalOf(raw, path) ?? (body === 413 ? body : null) ?? screen(headOf(raw))?.status ?? body
    if (refusal !== undefined) {
      // The body is not read: 100 MB that arrive at once would need 40 MB of buffers even to
      // discard them.
      reply.header('connection', 'close')
      if (refusal === 405) reply.header('allow', 'POST')
      report(refusal)
      answer(reply, refusal)
      return
    }
    // The body is bytes to us; a type that the framework cannot parse must not keep a genuine delivery out.
    raw.headers['content-type'] = 'application/octet-stream'
    done()
  })
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
    const isRefused = error instanceof BodyRefused
    if (isRefused || (typeof status === 'number' && status < 500)) reply.header('connection', 'close')
    if (status === 413 || isRefused) {
      const refusal = isRefused ? error.statusCode : 413
      report(refusal)
      return answer(reply, refusal)
    }
    if (typeof status === 'number' && status < 500) return answer(reply, 400)
    log.error(
      { reason: messageOf(error) },
      'webhooks: a delivery could not be accepted; its sender will try again',
    )
    return answer(reply, 503)
  })
  app.post('*', (request, reply) => {
    const { body, raw } = request
    const delivery = { ...headOf(raw), body: Buffer.isBuffer(body) ? body : Buffer.alloc(0) }
    receive(delivery, ({ status }) => {
      // A sender with a valid signature keeps its connection.
      if (status === 401) reply.header('connection', 'close')
      answer(reply, status)
    })
  })

  return { listen: () => open(app, options.listen), close }
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

function answer(reply: FastifyReply, status: keyof typeof BODIES): FastifyReply {
  return reply.code(status).type('application/json').send(BODIES[status])
}
