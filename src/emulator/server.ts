import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { readBody } from './body.ts'
import { admit, refund, type Admission } from './gate.ts'
import type { Answer } from './http.ts'
import type { Call, Operation } from './operation.ts'
import { invalid, notFound, Refusal, refuse } from './refusal.ts'
import type { World } from './world.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
  }
}

/** Time limit until a request is complete. */
const REQUEST_TIMEOUT_MS = 60_000
/** Longest id in a path; anything longer names nothing. */
const MAX_PARAM_CHARACTERS = 500

/** The HTTP side of the service: mounts operations, and answers every failure in the documented shape. */
export function createServer(world: World): FastifyInstance {
  const app = fastify({
    bodyLimit: world.limits.bodyBytes,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    // An address that cannot be decoded never reaches a route or the handlers below.
    frameworkErrors: (error, _request, reply) => sendRefusal(reply, asRefusal(error)),
    routerOptions: { maxParamLength: MAX_PARAM_CHARACTERS },
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest, body: IncomingMessage) =>
    readBody(body, Number(request.headers['content-length']), request.routeOptions.bodyLimit),
  )
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('date', new Date(world.clock.now() + world.faults.clockSkewMs).toUTCString())
    if (request.url.startsWith('/v1') && world.faults.use('bad_gateway')) {
      void reply.code(502).type('text/html').send('<html><body><h1>502 Bad Gateway</h1></body></html>')
      return
    }
    done()
  })
  // The emulator's own routes answer with objects, those of the service with serialized text.
  app.addHook('preSerialization', (_request, _reply, payload, done) => {
    world.save()
    done(null, payload)
  })
  app.setErrorHandler((error, _request, reply) => sendRefusal(reply, asRefusal(error)))
  app.setNotFoundHandler((request, reply) =>
    sendRefusal(reply, notFound('route', `${request.method} ${request.url.split('?')[0]}`)),
  )
  return app
}

/** Mounts `operations`; each gets the requests that the gate accepted. */
export function mount(app: FastifyInstance, world: World, operations: readonly Operation[]): void {
  const admissions = new WeakMap<FastifyRequest, Admission>()
  for (const operation of operations) {
    app.route({
      method: operation.method,
      url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      bodyLimit: operation.bodyLimit ?? world.limits.bodyBytes,
      config: { operation },
      // Before the body is read: a rejected token costs no upload.
      onRequest: (request, reply, done) => {
        const showBudget = (headers: Record<string, string>): void => void reply.headers(headers)
        const admission = admit(world, operation, request.headers.authorization, showBudget)
        if (admission !== undefined) admissions.set(request, admission)
        done()
      },
      handler: async (request, reply) => {
        const admission = admissions.get(request)
        try {
          await answer(world, operation, admission, request, reply)
        } catch (error) {
          const refusal = asRefusal(error)
          if (refusal.status === 429 && admission !== undefined) {
            refund(world, admission, (headers) => void reply.headers(headers))
          }
          throw refusal
        }
        return reply
      },
    })
  }
  const { faults, details } = world
  faults.learnOperations(
    (name) => operations.find(({ id }) => id === name || details.operationId(id) === name)?.id,
  )
}

const NO_TOKEN = { id: '', secret: '', scopes: [], createdAt: 0, expiresAt: null, revoked: false }

async function answer(
  world: World,
  operation: Operation,
  admission: Admission | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const sent = typeof request.body === 'string' ? request.body : ''
  const key = operation.idempotent === true ? idempotencyKey(world, request) : null
  const call: Call<unknown, unknown> = {
    world,
    params: request.params as Record<string, string>,
    ...operation.read(request.query as Record<string, unknown>, readJson(request, sent)),
    token: admission?.token ?? NO_TOKEN,
    idempotencyKey: key,
    lastEventId: header(request, 'last-event-id'),
  }
  if (operation.stream !== undefined) {
    world.save()
    const headers = reply.getHeaders() as Record<string, string>
    operation.stream(call, reply.raw, headers)
    reply.hijack()
    return
  }
  const act = async (): Promise<Answer> => operation.handle(call)
  const scope = `${call.token.id} ${request.method} ${request.url}`
  const made = await (key === null ? act() : world.idempotency.once(scope, key, sent, act))
  // The state is stored before an answer is sent, so that the end of the process cannot undo it.
  world.save()
  if ((made.lost === true && !replayed(made)) || world.faults.losesReplyOf(operation.id)) {
    reply.hijack()
    request.raw.socket.destroy()
    return
  }
  send(reply, made)
}

/** An answer is lost once: a repeat with the same idempotency value gets it. */
const lostOnce = new WeakSet<Answer>()
function replayed(answer: Answer): boolean {
  const before = lostOnce.has(answer)
  lostOnce.add(answer)
  return before
}

function send(reply: FastifyReply, { status, body, bytes, type, headers }: Answer): void {
  reply.code(status)
  if (headers !== undefined) reply.headers(headers)
  if (bytes !== undefined) void reply.type(type ?? 'application/octet-stream').send(bytes)
  else if (body === undefined) void reply.send()
  else void reply.type('application/json; charset=utf-8').send(JSON.stringify(body))
}

function idempotencyKey(world: World, request: FastifyRequest): string | null {
  const value = header(request, world.details.idempotency.header.toLowerCase())
  if (value === undefined || value === '') return null
  const limit = world.limits.idempotencyCharacters
  if (value.length <= limit) return value
  if (world.details.idempotency.overlong === 'ignore') return null
  throw invalid(`${world.details.idempotency.header} may have at most ${limit} characters`)
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function readJson(request: FastifyRequest, text: string): unknown {
  if (text === '') return undefined
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(request.headers['content-type'] ?? '')) {
    throw invalid('the body must be application/json')
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid('the body is not JSON')
  }
}

function sendRefusal(reply: FastifyReply, refusal: Refusal): void {
  const request_id = `req_${randomBytes(12).toString('hex')}`
  reply.code(refusal.status).headers({ ...refusal.headers })
  void reply
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ error: { code: refusal.code, message: refusal.message, request_id } }))
}

/**
 * A refusal of fastify (a body over its limit, an incomplete upload) is an invalid request; any
 * other error is an internal failure.
 */
function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (
    error instanceof Error &&
    'statusCode' in error &&
    typeof error.statusCode === 'number' &&
    error.statusCode < 500
  ) {
    const tooLarge = error.statusCode === 413
    return invalid(tooLarge ? 'the body is over the limit of this operation' : error.message)
  }
  return refuse('internal_error', error instanceof Error ? error.message : String(error))
}
