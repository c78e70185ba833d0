import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { messageOf } from '../../std/errors.ts'
import { writeJson } from '../../std/json.ts'
import type { Log } from '../../std/ports.ts'
import type { StoreReader } from '../../core/store-reader.ts'
import { ActionRefused, type AdminActions } from './actions.ts'
import { BodyRefused, hasBody } from './body.ts'
import { keepConnections, peerOf } from './connections.ts'
import { etagOf } from './console/assets.ts'
import { createLogins, type Logins } from './console/logins.ts'
import { addConsole, isConsolePath, LOGIN, loginOf, refuseForms } from './console/routes.ts'
import { admit, isLoopback, type Access } from './guard.ts'
import { readJsonBodies } from './json-body.ts'
import { addressesOf, CHECKED_EVERY, open, refuseConnection, STEADY, type Listener } from './listener.ts'
import { AT_API, AT_LOGIN, Guesses } from './guesses.ts'
import { openApiRoutes } from './openapi.ts'
import { connectionProblem, pathOf, Problem, PROBLEM_CONTENT } from './problem.ts'
import { READERS, type Relay } from './relay/relay.ts'
import { relayRoutes } from './relay/routes.ts'
import type { Answer, Route } from './route.ts'
import { callRoutes } from './routes/calls.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { eventRoutes, type FindBrief } from './routes/events.ts'
import { handlerRoutes } from './routes/handlers.ts'
import { probeRoutes, type ProbeSources } from './routes/probes.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { statusRoutes, type StatusReport } from './routes/status.ts'
import { toolRoutes } from './routes/tools.ts'
import { waitingRoutes } from './routes/waiting.ts'
import { createCheck } from './validation.ts'

export interface AdminOptions extends ProbeSources {
  listen: { host: string; port: number }
  /** Read at each request, since its file may change. null: no token, so only a listener on loopback has an API. */
  token: () => string | null
  store: StoreReader
  /** The summary of a session for transcript facts, as in callbacks; without it they have null. */
  summary?: FindBrief
  actions: AdminActions
  /** null or absent: the stream is off. */
  relay?: Relay | null
  status: () => StatusReport | Promise<StatusReport>
  log: Log
  version: string
  /** Our wall clock, milliseconds: logins of the console expire by it. */
  now?: () => number
}

/** Milliseconds until the headers must be complete. */
const HEADERS_TIME = 5_000
/** Milliseconds until a request must be complete. */
const REQUEST_TIME = 15_000
/** Milliseconds of silence after which a connection is closed. */
const IDLE_TIME = 60_000
/** Bytes of a body: the longest is the answer to a call, of which the service accepts 1 MiB. */
const BODY = 2 * 1024 * 1024
/** Bytes that all bodies over 64 KiB share while they are read. */
const SHARED = 4 * BODY
const HEADERS = 16 * 1024
/** Characters of an id in a path. */
const ID = 512
/** Readers of streams are counted separately. */
const CONNECTIONS = 100

/** The admin listener: probes, metrics and API (src/sidecar/README.md, Admin routes). */
export function createAdmin(options: AdminOptions): Listener {
  const { store, actions, token, log } = options
  const parts = [
    ...probeRoutes(options),
    ...statusRoutes(options.status),
    ...eventRoutes(store, options.summary ?? (async () => null)),
    ...sessionRoutes(store),
    ...callRoutes(store, actions),
    ...deliveryRoutes(store, actions),
    ...handlerRoutes(store, actions),
    ...toolRoutes(actions),
    ...waitingRoutes(store, options.actions),
    ...relayRoutes(options.relay ?? null),
  ]
  const description = openApiRoutes({
    version: options.version,
    routes: parts,
    secured: () => token() !== null,
  })
  const routes = [...parts, ...description]
  const openPaths = new Set(routes.flatMap((route) => (route.open ? [route.path] : [])))
  const logins = createLogins(options.now ?? Date.now)
  const guesses = {
    api: new Guesses(STEADY.steady, AT_API),
    login: new Guesses(STEADY.steady, AT_LOGIN),
  }
  let loopback = false

  const accessOf = (request: FastifyRequest): Access => {
    if (request.headers.authorization !== undefined || !isLoggedIn(request, token(), logins)) return 'token'
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseForms(request)
    return 'login'
  }
  const app = fastify({
    requestTimeout: REQUEST_TIME,
    connectionTimeout: IDLE_TIME,
    bodyLimit: BODY,
    // Node takes the longer of the two times for that of the whole request: this one must be the shorter.
    http: {
      maxHeaderSize: HEADERS,
      headersTimeout: HEADERS_TIME,
      connectionsCheckingInterval: CHECKED_EVERY,
    },
    routerOptions: { maxParamLength: ID },
    clientErrorHandler: (error, socket) => refuseConnection(error, socket, connectionProblem),
    frameworkErrors: (error, request, reply) => void fail(error, request, reply, log),
  })
  const connections = CONNECTIONS + READERS
  const close = keepConnections(app, {
    limit: connections,
    onEvicted: createThrottledLog(STEADY, (times) =>
      log.warn(
        { times, connections },
        'admin: all connections were in use; the longest without a request were closed for new ones',
      ),
    ),
    onRefused: createThrottledLog(STEADY, (times) =>
      log.error(
        { times, connections },
        'admin: all connections are being served; new ones were closed, probes as well',
      ),
    ),
  })
  readJsonBodies(app, { limit: BODY, shared: SHARED })
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(SECURITY)
    const path = pathOf(request.url)
    const access = openPaths.has(path) ? 'everybody' : isConsolePath(path) ? 'page' : accessOf(request)
    admit(request.headers, access, {
      token: token(),
      loopback,
      isRight: (wanted, given) => guesses.api.isRight(wanted, given, peerOf(request.ip)),
    })
    if (request.is404) throw missing(request, routes)
    if (request.method === 'POST' || !hasBody(request.raw)) return
    // No other method has a body: a body is dropped, and the connection closes.
    request.raw.resume()
    reply.header('connection', 'close')
  })
  const logThrottled = createThrottledLog(STEADY, (times) =>
    log.warn({ times }, 'admin: a request had a wrong admin token'),
  )
  app.setErrorHandler((error, request, reply) => {
    if (isWrongToken(error, request)) logThrottled()
    return fail(error, request, reply, log)
  })
  for (const route of routes) add(app, route, options.version)
  addConsole(app, {
    token,
    logins,
    isRight: ({ ip }, wanted, given) => guesses.login.isRight(wanted, given, peerOf(ip)),
  })

  return {
    async listen() {
      const address = await open(app, options.listen)
      const addresses = addressesOf(app)
      loopback = addresses.length > 0 && addresses.every(({ host }) => isLoopback(host))
      return address
    },
    close() {
      options.relay?.close()
      return close()
    },
  }
}

function isLoggedIn(request: FastifyRequest, token: string | null, logins: Logins): boolean {
  return token !== null && logins.expiryOf(loginOf(request), token) !== null
}

/** A request without a token is not suspicious. */
function isWrongToken(error: unknown, { headers, url }: FastifyRequest): boolean {
  const given = headers.authorization !== undefined || pathOf(url) === LOGIN
  return given && error instanceof Problem && error.code === 'unauthorized'
}

/** Browsers must not display, cache or frame these answers, or give them to another origin. */
const SECURITY = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function add(app: FastifyInstance, route: Route, version: string): void {
  const checkQuery = route.open ? null : createCheck('query', route.query)
  const checkBody = route.method === 'POST' ? createCheck('body', route.body) : null
  app.route<{ Params: Record<string, string> }>({
    method: route.method,
    // A stream has no known length.
    exposeHeadRoute: route.success.content !== 'text/event-stream',
    url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    async handler(request, reply) {
      const { params, query } = request
      // By this header a page that was loaded before an upgrade detects that it is old.
      reply.header('x-sidecar-version', version)
      const body = request.body ?? {}
      checkQuery?.(query)
      checkBody?.(body)
      const lastEventId = [request.headers['last-event-id']].flat()[0]
      const answer = await route.handle({ params, query, body, lastEventId })
      if (answer.stream !== undefined) return streamed(reply, answer, answer.stream)
      const text = answer.contentType === undefined ? writeJson(answer.body) : String(answer.body)
      if (route.method === 'GET' && answer.contentType === undefined) {
        const etag = etagOf(text)
        reply.header('etag', etag)
        if (request.headers['if-none-match'] === etag) return reply.code(304).send()
      }
      return reply
        .code(answer.status)
        .type(answer.contentType ?? 'application/json; charset=utf-8')
        .send(text)
    },
  })
}

/** Streams the answer after its head is sent. */
function streamed(
  reply: FastifyReply,
  { status, contentType }: Answer,
  stream: NonNullable<Answer['stream']>,
): FastifyReply {
  const { raw } = reply.hijack()
  // The connection ends the body: chunks would need a separate encoding for every reader.
  raw.removeHeader('transfer-encoding')
  raw.writeHead(status, { ...SECURITY, 'content-type': contentType })
  stream(raw)
  return reply
}

function missing(request: FastifyRequest, routes: readonly Route[]): Problem {
  const path = pathOf(request.url)
  const methods = routes.filter((route) => matches(route.path, path)).map(({ method }) => method)
  if (methods.length === 0)
    return new Problem('not_found', 'there is nothing at this path; see /openapi.json')
  return new Problem('method_not_allowed', `this path accepts ${methods.join(', ')}`, {
    headers: {
      allow: methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', '),
    },
  })
}

function matches(template: string, path: string): boolean {
  const wanted = template.split('/')
  const given = path.split('/')
  return (
    wanted.length === given.length && wanted.every((part, i) => part.startsWith('{') || part === given[i])
  )
}

function fail(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Log): FastifyReply {
  const problem = problemOf(error)
  // A refused request does not keep its connection.
  if (problem.status === 401 || problem.status === 429) reply.header('connection', 'close')
  if (hasBody(request.raw) && !request.raw.complete) {
    request.raw.resume()
    reply.header('connection', 'close')
  }
  if (problem.status === 500) log.error({ err: error, path: pathOf(request.url) }, 'admin: a request failed')
  return (
    reply
      .code(problem.status)
      .headers({ ...SECURITY, ...problem.headers })
      .type(PROBLEM_CONTENT)
      // As bytes: to a text the framework adds a charset, which this type does not have.
      .send(Buffer.from(JSON.stringify(problem.document(request.url, request.id))))
  )
}

/** A refusal by the framework is the client's fault and may be shown; any other error may not. */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ActionRefused) return new Problem(error.code, error.message)
  if (error instanceof BodyRefused && error.statusCode === 503) {
    return new Problem('not_ready', error.message, { headers: { 'retry-after': '1' } })
  }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413 && error instanceof BodyRefused) return new Problem('too_large', error.message)
  if (status === 413) return new Problem('too_large', `a body has at most ${BODY} bytes`)
  if (status === 415) return new Problem('unsupported_media_type', 'a body must be application/json')
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new Problem('invalid_request', messageOf(error))
  }
  return new Problem('internal_error', 'the sidecar failed; see its log')
}
