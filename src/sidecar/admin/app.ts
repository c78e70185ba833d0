import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { writeJson } from '../../std/json.ts'
import type { Log } from '../../std/ports.ts'
import type { StoreReader } from '../../core/store-reader.ts'
import type { AdminActions } from './actions.ts'
import { BodyReader } from './listener.ts'
import { etagOf } from './console/assets.ts'
import { addConsole, type ConsoleDoor } from './console/routes.ts'
import { openApiRoutes } from './openapi.ts'
import { pathOf, Problem } from './problem.ts'
import type { Refuse } from './refusal.ts'
import type { Relay } from './relay/relay.ts'
import { relayRoutes } from './relay/routes.ts'
import type { Route } from './route.ts'
import { attentionRoute } from './routes/attention.ts'
import { callRoutes } from './routes/calls.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { eventRoutes, type FindBrief } from './routes/events.ts'
import { handlerRoutes } from './routes/handlers.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { statusRoute, type StatusReport } from './routes/status.ts'
import { toolRoute } from './routes/tools.ts'
import { waitingRoutes } from './routes/waiting.ts'
import { compile, createCheck } from './validation.ts'

/** What the routes read and do. */
export interface AppOptions {
  store: StoreReader
  /** The summary of a session for transcript facts, as in callbacks; without it they have null. */
  summary?: FindBrief
  actions: AdminActions
  /** null or absent: the stream is off. */
  relay?: Relay | null
  status: () => StatusReport | Promise<StatusReport>
  log: Log
  version: string
  /** Our wall clock, milliseconds. */
  now?: () => number
}

/** Bytes of a body: the longest is the answer to a call, of which the service accepts 1 MiB. */
const BODY = 2 * 1024 * 1024
/** Bytes that all bodies over 64 KiB share while they are read. */
const SHARED = 4 * BODY
/** Without these the framework loads compilers of its own, which are as large as itself. `createCheck` replaces the first. */
const COMPILERS = { buildValidator: () => compile, buildSerializer: () => () => writeJson }
/** The method and the path of a route, as fastify has them. */
interface Template {
  method: string
  url: string
}

/** Characters of an id in a path. */
const ID = 512

/**
 * Everything that the admin listener serves beside the probes: API, relay and console, for requests that are admitted.
 * Loading it takes as long as the rest of a start, so it is loaded by the first request that needs it.
 */
export async function createApp(
  options: AppOptions,
  door: ConsoleDoor,
  refuse: Refuse,
): Promise<(request: IncomingMessage, response: ServerResponse) => void> {
  const { store, actions, version } = options
  const parts = [
    statusRoute(options.status),
    attentionRoute(store, actions, options.status, options.now ?? Date.now),
    ...eventRoutes(store, options.summary ?? (async () => null)),
    ...sessionRoutes(store),
    ...callRoutes(store, actions),
    ...deliveryRoutes(store, actions),
    ...handlerRoutes(store, actions),
    toolRoute(actions),
    ...waitingRoutes(store, actions),
    ...relayRoutes(options.relay ?? null),
  ]
  const secured = (): boolean => door.token() !== null
  const routes = [...parts, ...openApiRoutes({ version, routes: parts, secured })]
  const app: FastifyInstance = fastify({
    bodyLimit: BODY,
    routerOptions: { maxParamLength: ID },
    schemaController: { compilersFactory: COMPILERS },
    frameworkErrors: (error, request, reply) => {
      reply.hijack()
      refuse(error, request.raw, reply.raw)
    },
  })
  app.setErrorHandler((error, request, reply) => {
    reply.hijack()
    refuse(error, request.raw, reply.raw)
  })
  const templates: Template[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) templates.push({ method: one, url })
  })
  app.addHook('onRequest', async (request) => {
    const fixed = templates.filter(({ url }) => url === pathOf(request.url))
    // `GET /api/deliveries/retry` has no route of its own. Without this check, `retry` would be taken for the id of a
    // delivery.
    const isShadowed = fixed.length > 0 && fixed.every(({ method }) => method !== request.method)
    if (request.is404 || isShadowed) throw missing(request, isShadowed ? fixed : templates)
  })
  app.setValidatorCompiler(({ schema, httpPart }) => createCheck(schema, httpPart))
  app.setReplySerializer(writeJson)
  validateWithTags(app)
  readJsonBodies(app)
  for (const route of routes) add(app, route)
  addConsole(app, door)
  await app.ready()
  return (request, response) => app.routing(request, response)
}

/** Many clients label an empty body as JSON; it is the same as none. */
function readJsonBodies(app: FastifyInstance): void {
  const bodies = new BodyReader(SHARED)
  const parse = app.getDefaultJsonParser('error', 'ignore')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    bodies.read(request.raw, request.routeOptions.bodyLimit, (error, body = Buffer.alloc(0)) => {
      if (error !== null) return done(error)
      if (body.length === 0) return done(null)
      void parse(request, body.toString(), done)
    })
  })
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined) request.body = {}
  })
}

function add(app: FastifyInstance, route: Route): void {
  const { method, query, body, success } = route
  app.route<{ Params: Record<string, string> }>({
    method,
    // The answer to a HEAD states the length of the body, which a stream does not have.
    exposeHeadRoute: success.content !== 'text/event-stream',
    url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: { querystring: query, ...(method === 'POST' ? { body } : {}) },
    handler: (request, reply) => route.handle(request, reply.code(success.status)),
  })
}

/**
 * The console requests the same lists every two seconds, with the ETag of the last answer. If nothing changed, the
 * answer is 304 without a body.
 */
function validateWithTags(app: FastifyInstance): void {
  app.addHook('onSend', async ({ method, headers }, reply, payload) => {
    if (method === 'POST' || typeof payload !== 'string' || !isJson(reply)) return payload
    const etag = etagOf(payload)
    reply.header('etag', etag)
    if (headers['if-none-match'] !== etag) return payload
    reply.code(304).removeHeader('content-type')
    return null
  })
}

function isJson(reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('application/json')
}

/** Why a request has no route: nothing is at its path, or not for its method. */
function missing({ url }: FastifyRequest, templates: readonly Template[]): Problem {
  const path = pathOf(url)
  const found = templates.filter((template) => matches(template.url, path))
  const allowed = [...new Set(found.map(({ method }) => method))].toSorted()
  if (allowed.length === 0)
    return new Problem('not_found', 'there is nothing at this path; see /openapi.json')
  const named = allowed.filter((method) => method !== 'HEAD')
  return new Problem('method_not_allowed', `this path accepts ${named.join(', ')}`, {
    headers: { allow: allowed.join(', ') },
  })
}

/** `template`: as fastify writes it, such as `/api/sessions/:id`. */
function matches(template: string, path: string): boolean {
  if (template.endsWith('/*')) return path.startsWith(template.slice(0, -1))
  const wanted = template.split('/')
  const given = path.split('/')
  return (
    wanted.length === given.length && wanted.every((part, i) => part.startsWith(':') || part === given[i])
  )
}
