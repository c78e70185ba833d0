import type { IncomingMessage } from 'node:http'
import { fastify, type FastifyReply } from 'fastify'
import { createComplaint } from '../core/complaint.ts'
import { messageOf } from '../core/errors.ts'
import type { Observer, WebhookOutcome } from '../core/observer.ts'
import type { Log } from '../core/ports.ts'
import { closingInTime } from './closing.ts'
import { CHECKED_EVERY, open, refuseConnection, STEADY, type Listener } from './listener.ts'
import { pathOf } from './problem.ts'

/** A delivery as it came, nothing of it believed. */
export interface WebhookDelivery {
  /** undefined when the header is missing or came more than once. */
  signature: string | undefined
  timestamp: string | undefined
  body: Buffer
}

export interface WebhookListenerOptions {
  listen: { host: string; port: number }
  path: string
  /** Verifies and stores; 200 only once the hint is durable. */
  receive: (delivery: WebhookDelivery) => Promise<{ status: 200 | 401 | 503; outcome: WebhookOutcome }>
  /** Told of deliveries that never came to `receive`. */
  observer?: Pick<Observer, 'webhook'>
  log: Log
  /** Milliseconds within which the headers, and the whole request, must have come. */
  times?: { headers: number; request: number; checkedEvery: number }
}

/** Bytes of a delivery (product.md, HTTP routes). */
const BODY = 1024 * 1024
/** Bytes of all headers: a sender and the proxies before it need two or three thousand. */
const HEADERS = 8 * 1024
/** Milliseconds that an idle connection is kept: longer than the 60 s of common proxies, which must be the ones to close. */
const KEEP_ALIVE = 65_000
/** More than one service opens; each holds at most one body. */
const CONNECTIONS = 256
/** A receiver has 10 s in the service's eyes: what came slower was given up by its sender. */
const TIMES = { headers: 5_000, request: 10_000, checkedEvery: CHECKED_EVERY }

const BODIES = {
  200: '{"received":true}',
  401: '{"received":false,"reason":"the signature or the timestamp is missing, wrong or stale"}',
  404: '{"received":false,"reason":"not found"}',
  405: '{"received":false,"reason":"method not allowed"}',
  413: '{"received":false,"reason":"a delivery has at most 1048576 bytes"}',
  415: '{"received":false,"reason":"no content-encoding is taken"}',
  400: '{"received":false,"reason":"bad request"}',
  503: '{"received":false,"reason":"try again later"}',
} as const

/** The public door for webhooks: takes POSTs to one path, and hands their raw bytes over. */
export function createWebhookListener(options: WebhookListenerOptions): Listener {
  const { path, receive, observer, log } = options
  const times = options.times ?? TIMES
  const app = fastify({
    bodyLimit: BODY,
    requestTimeout: times.request,
    // A socket on which nothing moves; the limits above are for what moves too slowly.
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
  app.server.maxConnections = CONNECTIONS
  app.server.on(
    'drop',
    createComplaint(STEADY, (times) =>
      log.warn(
        { times, places: CONNECTIONS },
        'webhooks: all places for connections are taken; further ones are turned away',
      ),
    ),
  )
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    const refusal = refusalOf(raw, path)
    if (refusal !== null) {
      // Not a byte of the body was read, nor will be.
      reply.header('connection', 'close')
      if (refusal === 405) reply.header('allow', 'POST')
      answer(reply, refusal)
      return
    }
    // The body is bytes to us; a type that the framework cannot parse must not keep a genuine delivery out.
    raw.headers['content-type'] = 'application/octet-stream'
    done()
  })
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
    if (typeof status === 'number' && status < 500) reply.header('connection', 'close')
    if (status === 413) {
      observer?.webhook('too_large')
      return answer(reply, 413)
    }
    if (typeof status === 'number' && status < 500) return answer(reply, 400)
    log.error(
      { reason: messageOf(error) },
      'webhooks: a delivery could not be taken; its sender will try again',
    )
    return answer(reply, 503)
  })
  app.post('*', async (request, reply) => {
    const { headers } = request.raw
    const { body } = request
    const { status } = await receive({
      signature: single(headers['x-service-signature']),
      timestamp: single(headers['x-service-timestamp']),
      body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
    })
    // A place among the connections is kept by those who prove themselves.
    if (status === 401) reply.header('connection', 'close')
    return answer(reply, status)
  })

  return { listen: () => open(app, options.listen), close: closingInTime(app) }
}

function refusalOf({ url, method, headers }: IncomingMessage, path: string): 404 | 405 | 415 | null {
  if (pathOf(url ?? '') !== path) return 404
  if (method !== 'POST') return 405
  const encoding = headers['content-encoding']
  return encoding === undefined || encoding.toLowerCase() === 'identity' ? null : 415
}

/** Node joins a header that came twice with a comma, which neither of ours contains. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && !value.includes(',') ? value : undefined
}

function answer(reply: FastifyReply, status: keyof typeof BODIES): FastifyReply {
  return reply.code(status).type('application/json').send(BODIES[status])
}
