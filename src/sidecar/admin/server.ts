import type { IncomingMessage, ServerResponse } from 'node:http'
import { createThrottledLog } from '../../std/throttled-log.ts'
import type { AppOptions } from './app.ts'
import { createLogins, isLoggedIn } from './console/logins.ts'
import { admit, isConsolePath, isLoopback, refuseForms, type Access } from './guard.ts'
import { AT_API, AT_LOGIN, Guesses } from './guesses.ts'
import { createListener, peerOf, STEADY, type Listener } from './listener.ts'
import { createProbes, type ProbeSources } from './probes.ts'
import { connectionProblem, pathOf, Problem, queryOf } from './problem.ts'
import { createRefuse, dropBody, SECURITY } from './refusal.ts'
import { READERS } from './relay/relay.ts'
import { subscribe, usualSubscription } from './relay/subscribe.ts'

export interface AdminOptions extends ProbeSources, AppOptions {
  listen: { host: string; port: number }
  /** Read at each request, since its file may change. null: no token, so only a listener on loopback has an API. */
  token: () => string | null
}

/** Milliseconds. */
const TIMES = { headers: 5_000, request: 15_000, idle: 60_000 }
const HEADERS = 16 * 1024
/** The most connections other than those of the relay's readers. */
const CONNECTIONS = 100

/**
 * The admin listener (src/sidecar/README.md, Admin routes). It admits requests, answers probes and begins streams; an app that is
 * loaded at the first other request serves the rest.
 */
export function createAdmin(options: AdminOptions): Listener {
  const { token, log, version } = options
  const probes = createProbes(options)
  const logins = createLogins(options.now ?? Date.now)
  const guesses = {
    api: new Guesses(STEADY.steady, AT_API),
    login: new Guesses(STEADY.steady, AT_LOGIN),
  }
  const refuse = createRefuse(log)
  let loopback = false
  let app: Promise<(request: IncomingMessage, response: ServerResponse) => void> | null = null

  const accessOf = (request: IncomingMessage, path: string): Access => {
    if (probes.has(path)) return 'everybody'
    if (isConsolePath(path)) return 'page'
    if (request.headers.authorization !== undefined || !isLoggedIn(request, token(), logins)) return 'token'
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseForms(request.headers)
    return 'login'
  }
  const loadApp = async () => {
    const { createApp } = await import('./app.ts')
    const isRight = (request: IncomingMessage, wanted: string, given: string): boolean =>
      guesses.login.isRight(wanted, given, addressOf(request))
    return createApp(options, { token, logins, isRight }, refuse)
  }
  /** A load may fail, for example because no more files can be opened: the next request tries again. */
  const loaded = (): ReturnType<typeof loadApp> =>
    (app ??= loadApp().catch((error: unknown) => {
      app = null
      throw error
    }))
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value)
    const { method, url = '', headers } = request
    const path = pathOf(url)
    admit(headers, accessOf(request, path), {
      token: token(),
      loopback,
      isRight: (wanted, given) => guesses.api.isRight(wanted, given, addressOf(request)),
    })
    // No other method has a body.
    if (method !== 'POST') dropBody(request, response)
    // By this header a page that was loaded before an upgrade detects that it is old.
    response.setHeader('x-sidecar-version', version)
    const probe = probes.get(path)
    if (probe === undefined) {
      const subscription = method === 'GET' ? usualSubscription(url) : null
      if (subscription === null) return (await loaded())(request, response)
      return subscribe(options.relay ?? null, subscription, headers)(response)
    }
    if (method !== 'GET' && method !== 'HEAD')
      throw new Problem('method_not_allowed', 'this path accepts GET', { headers: { allow: 'GET, HEAD' } })
    const { status, contentType, body } = await probe(new URLSearchParams(queryOf(url)).has('verbose'))
    const head = { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }
    response.writeHead(status, head).end(body)
  }
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
    serve: (request, response) =>
      void serve(request, response).catch((error: unknown) => refuse(error, request, response)),
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
