import type { IncomingMessage, ServerResponse } from 'node:http'
import { parse } from 'node:querystring'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { writeJson } from '../../std/json.ts'
import type { Log } from '../../std/ports.ts'
import type { StoreReader } from '../../core/store-reader.ts'
import { ActionRefused, type AdminActions } from './actions.ts'
import { BodyReader, BodyRefused, hasBody, type DirectRequest } from './body.ts'
import { peerOf } from './connections.ts'
import { etagOf } from './console/assets.ts'
import { createLogins, type Logins } from './console/logins.ts'
import { consoleRoutes, isConsolePath, LOGIN, loginOf, refuseForms } from './console/routes.ts'
import { admit, isLoopback, type Access } from './guard.ts'
import { readJsonBody } from './json-body.ts'
import { createListener, STEADY, type Listener } from './listener.ts'
import { AT_API, AT_LOGIN, Guesses } from './guesses.ts'
import { openApiRoutes } from './openapi.ts'
import { connectionProblem, pathOf, Problem, PROBLEM_CONTENT, queryOf } from './problem.ts'
import { READERS, type Relay } from './relay/relay.ts'
import { relayRoutes } from './relay/routes.ts'
import type { Answer, Route } from './route.ts'
import { createRouter, type Served } from './router.ts'
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

/** Milliseconds. */
const TIMES = { headers: 5_000, request: 15_000, idle: 60_000 }
/** Bytes of a body: the longest is the answer to a call, of which the service accepts 1 MiB. */
const BODY = 2 * 1024 * 1024
/** Bytes that all bodies over 64 KiB share while they are read. */
const SHARED = 4 * BODY
const HEADERS = 16 * 1024
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

  const accessOf = (request: IncomingMessage, path: string): Access => {
    if (openPaths.has(path)) return 'everybody'
    if (isConsolePath(path)) return 'page'
    if (request.headers.authorization !== undefined || !isLoggedIn(request, token(), logins)) return 'token'
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseForms(request)
    return 'login'
  }
  const find = createRouter([
    ...routes.map((route) => served(route)),
    ...consoleRoutes({
      token,
      logins,
      isRight: (request, wanted, given) => guesses.login.isRight(wanted, given, addressOf(request)),
    }),
  ])
  const bodies = new BodyReader(SHARED)
  const respond = async (request: DirectRequest, response: ServerResponse): Promise<void> => {
    setHeaders(response, SECURITY)
    const path = pathOf(request.url ?? '')
    admit(request.headers, accessOf(request, path), {
      token: token(),
      loopback,
      isRight: (wanted, given) => guesses.api.isRight(wanted, given, addressOf(request)),
    })
    const { route, params } = find(request.method ?? '', path)
    // No other method has a body: a body is dropped, and the connection closes.
    if (request.method !== 'POST') dropBody(request, response)
    const body =
      request.method === 'POST' ? await readJsonBody(request, bodies, route.bodyLimit ?? BODY) : undefined
    // By this header a page that was loaded before an upgrade detects that it is old.
    response.setHeader('x-sidecar-version', options.version)
    send(request, response, await route.answer(request, body, params))
  }
  const logThrottled = createThrottledLog(STEADY, (times) =>
    log.warn({ times }, 'admin: a request had a wrong admin token'),
  )
  let requests = 0
  const connections = CONNECTIONS + READERS
  const listener = createListener({
    listen: options.listen,
    headers: HEADERS,
    times: TIMES,
    refusal: connectionProblem,
    connections: {
      limit: connections,
      onEvicted: createThrottledLog(STEADY, (times) =>
        log.warn(
          { times, connections },
          'admin: all connections were in use; those that were idle for longest were closed for new ones',
        ),
      ),
      onRefused: createThrottledLog(STEADY, (times) =>
        log.error(
          { times, connections },
          'admin: all connections are being served; new ones were closed, probes as well',
        ),
      ),
    },
    serve(request, response) {
      const id = `req-${(++requests).toString(36)}`
      respond(request, response).catch((error: unknown) => {
        if (isWrongToken(error, request)) logThrottled()
        fail(error, { request, response, id, log })
      })
    },
  })

  return {
    async listen() {
      const address = await listener.listen()
      loopback = isLoopback(address.host)
      return address
    },
    close() {
      options.relay?.close()
      return listener.close()
    },
  }
}

function addressOf({ socket }: IncomingMessage): string {
  return peerOf(socket.remoteAddress ?? '')
}

function isLoggedIn(request: IncomingMessage, token: string | null, logins: Logins): boolean {
  return token !== null && logins.expiryOf(loginOf(request), token) !== null
}

/** A request without a token is not suspicious. */
function isWrongToken(error: unknown, { headers, url }: IncomingMessage): boolean {
  const given = headers.authorization !== undefined || pathOf(url ?? '') === LOGIN
  return given && error instanceof Problem && error.code === 'unauthorized'
}

const JSON_CONTENT = 'application/json; charset=utf-8'

/** Browsers must not display, cache or frame these answers, or give them to another origin. */
const SECURITY = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function served(route: Route): Served {
  const checkQuery = route.open ? null : createCheck('query', route.query)
  const checkBody = route.method === 'POST' ? createCheck('body', route.body) : null
  return {
    method: route.method,
    path: route.path,
    streams: route.success.content === 'text/event-stream',
    async answer(request, body, params) {
      const query = parse(queryOf(request.url ?? ''))
      await checkQuery?.(query)
      await checkBody?.(body)
      const lastEventId = [request.headers['last-event-id']].flat()[0]
      return await route.handle({ params, query, body, lastEventId })
    },
  }
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // A client that left meanwhile would keep a place for a reader.
  if (response.destroyed) return
  setHeaders(response, answer.headers ?? {})
  if (answer.stream !== undefined) {
    // The connection ends the body: chunks would need a separate encoding for every reader.
    response.removeHeader('transfer-encoding')
    response.writeHead(answer.status, { 'content-type': answer.contentType })
    return answer.stream(response)
  }
  if (answer.status === 204 || answer.status === 304) return void response.writeHead(answer.status).end()
  const { body, contentType } = answer
  if (contentType !== undefined)
    return end(response, answer.status, contentType, Buffer.isBuffer(body) ? body : String(body))
  const text = writeJson(answer.body)
  if (request.method !== 'POST') {
    const etag = etagOf(text)
    response.setHeader('etag', etag)
    if (request.headers['if-none-match'] === etag) return void response.writeHead(304).end()
  }
  end(response, answer.status, JSON_CONTENT, text)
}

function end(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

/** The connection closes: what is left of the body is discarded. */
function dropBody(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request) || request.complete) return
  response.setHeader('connection', 'close')
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  id: string
  log: Log
}

function fail(error: unknown, { request, response, id, log }: Exchange): void {
  const problem = problemOf(error)
  const url = request.url ?? ''
  if (problem.status === 500) log.error({ err: error, path: pathOf(url) }, 'admin: a request failed')
  if (response.headersSent) return void response.destroy()
  // A refused request does not keep its connection.
  if (problem.status === 401 || problem.status === 429) response.setHeader('connection', 'close')
  dropBody(request, response)
  setHeaders(response, { ...SECURITY, ...problem.headers })
  end(response, problem.status, PROBLEM_CONTENT, JSON.stringify(problem.document(url, id)))
}

/** Only a refusal is shown to the client. */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ActionRefused) return new Problem(error.code, error.message)
  if (!(error instanceof BodyRefused)) return new Problem('internal_error', 'the sidecar failed; see its log')
  if (error.statusCode === 503)
    return new Problem('not_ready', error.message, { headers: { 'retry-after': '1' } })
  return new Problem(error.statusCode === 413 ? 'too_large' : 'invalid_request', error.message)
}
