import { ServiceError } from '../core/errors.ts'
import { messageOf } from '../std/errors.ts'
import { isObject } from '../std/json.ts'
import type { JsonObject } from '../std/json.ts'
import type { Clock, Http, HttpReply, Log, Random } from '../std/ports.ts'
import type { ListQuery, Posting, Service } from '../core/ports.ts'
import type { Page, WebhookSubscription } from '../core/resource.ts'
import { Malformed, readItem, readSession, readTurn } from '../core/wire.ts'
import { discover } from './discovery/discovery.ts'
import type { Discovery, OperationName } from './discovery/discovery.ts'
import { openEvents } from './transport/events.ts'
import { Explorer } from './explorer.ts'
import { readJson, readResource } from '../std/depth.ts'
import { fillPath } from '../std/path.ts'
import { fillTemplate, type Template } from '../std/template.ts'
import type { Ids } from './discovery/parameters.ts'
import type { RefusedFor } from './transport/budget.ts'
import { Requester } from './transport/requester.ts'
import type { Observation } from './transport/requester.ts'
import type { Route, RouteOverrides } from './discovery/route.ts'
import {
  asList,
  parseArtifact,
  parseHealth,
  parseOutcome,
  parsePage,
  parseWebhook,
} from '../protocol/answers.ts'

export interface ServiceOptions {
  /** Without `/v1`. */
  baseUrl: string
  token: string
  http: Http
  clock: Clock
  random: Random
  log: Log
  /** `service.routes` of the configuration. */
  routes?: RouteOverrides
  /** Milliseconds for one attempt. Default 30 s. */
  timeout?: number
  /** Milliseconds for a request with all its waits and attempts. Default 60 s. */
  patience?: number
  /** Requests under way at once, not counting streams. Default 8. */
  maxInFlight?: number
  observe?: (seen: Observation) => void
  onRetry?: (code: string) => void
  onBudget?: (bucket: string, remaining: number) => void
}

export interface ServiceClient extends Service {
  /**
   * Reads the service's description. A fault of it is in the result, and an earlier result is kept.
   * @throws {ServiceError} `stopped`, and nothing else.
   */
  discover(): Promise<Discovery>
  /** The current result of discovery. */
  discovery(): Discovery
  setToken(token: string): void
  /** `processes` processes use our token: this one gets an equal part of its rate budget. */
  share(processes: number): void
  /** Calls `listener` when the service asks to wait: this concerns every process with our token. */
  onRefused(listener: (refused: RefusedFor) => void): void
  /** A short hash of the base URL and the token. Processes with the same one share a rate budget. */
  credential(): string
  /** Another process with our token was refused, so this one waits as well. */
  heed(refused: RefusedFor): void
  /** How many requests each rate bucket has left, as the service last reported. */
  budget(): Record<string, number>
  /**
   * The service asked for a wait: no request is sent before this time, on our wall clock. null: no wait.
   */
  heldUntil(): number | null
  /** Ends all running and waiting requests with a ServiceError `stopped`; later requests get the same. */
  stop(): void
}

/** After a page that was short enough, the next may have this many times its entries. */
const GROWTH = 1.25
/** The most pages that are read: a service that always has one more would cause an endless loop. */
const PAGES_MAX = 100
/** The service refuses a higher `limit` (rule LIM-03). */
const LIMIT_MAX = 100

/**
 * The client of the Agent Session Service.
 * @throws {OperatorError} on `routes` that cannot be used.
 */
export function createService(options: ServiceOptions): ServiceClient {
  const { http, clock, random, log, timeout = 30_000, patience = 60_000, maxInFlight = 8 } = options
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const room = new PageRoom()
  const requester: Requester = new Requester({
    baseUrl,
    http,
    clock,
    random,
    log,
    token: options.token,
    found: () => explorer.found,
    observe: options.observe,
    onRetry: options.onRetry,
    onBudget: options.onBudget,
    timeout,
    patience,
    maxInFlight,
  })
  const { authorization, budget, offset } = requester
  const explorer = new Explorer<OperationName>({
    requester,
    clock,
    log,
    discover: (document) => discover(document, options.routes),
  })
  const onSkipped = (fault: Malformed): void =>
    log.warn(
      { fault: fault.message },
      'an entry of a list from the service could not be parsed and is skipped',
    )

  interface Request {
    ids?: Ids
    query?: ListQuery
    /** Created when the request is sent: a route that has moved may need another path. */
    body?: () => JsonObject
    posting?: Posting
    signal?: AbortSignal | undefined
  }

  async function send(operation: OperationName, request: Request): Promise<HttpReply> {
    const route = await routeOf(operation)
    return explorer.follow(operation, route, (to) => sendTo(operation, to, request))
  }

  async function routeOf(operation: OperationName): Promise<Route> {
    const route = await explorer.route(operation)
    if (route.found) return route
    throw new ServiceError({ code: 'route_unknown', status: 0, message: route.reason })
  }

  function sendTo(
    operation: OperationName,
    route: Route,
    { ids = {}, query, body, posting, signal }: Request,
  ): Promise<HttpReply> {
    const call = {
      operation,
      method: route.method,
      path: fillPath(route, ids, ids.turn) + queryOf(query),
      ...(body === undefined ? {} : { body: body() }),
      ...(posting === undefined ? {} : { posting }),
      ...(signal === undefined ? {} : { signal: AbortSignal.any([signal, requester.stopped]) }),
    }
    return route.method === 'GET' ? requester.read(call, ids.session ?? operation) : requester.send(call)
  }

  async function read<T>(
    operation: OperationName,
    request: Request,
    parse: (value: unknown) => T,
  ): Promise<T> {
    const reply = await send(operation, request)
    try {
      return parse(readResource(reply.body))
    } catch (error) {
      throw malformed(operation, reply, error)
    }
  }

  async function readPage<T>(
    operation: OperationName,
    ids: Ids,
    { limit = LIMIT_MAX, ...query }: ListQuery,
    parse: (entry: unknown) => T,
  ): Promise<Page<T>> {
    const wanted = Math.min(Math.max(1, Math.trunc(limit)), LIMIT_MAX)
    return await room.ask(operation, wanted, (fitting) =>
      read(operation, { ids, query: { ...query, limit: fitting } }, (value) =>
        parsePage(value, parse, onSkipped),
      ),
    )
  }

  /** Reads every page of a list that accepts neither `limit` nor `order`. */
  async function readAll<T>(operation: OperationName, ids: Ids, parse: (entry: unknown) => T): Promise<T[]> {
    const all: T[] = []
    let after: string | undefined
    for (let page = 0; page < PAGES_MAX; page++) {
      const query = after === undefined ? {} : { after }
      const { data, hasMore, lastId } = await read(operation, { ids, query }, (value) =>
        parsePage(asList(value), parse, onSkipped),
      )
      all.push(...data)
      if (!hasMore || lastId === null || lastId === after) break
      after = lastId
    }
    return all
  }

  function bodyOf(template: Template | null, values: Record<string, string>): JsonObject {
    const filled = template === null ? null : fillTemplate(template, values)
    return isObject(filled) ? filled : {}
  }

  return {
    health: () => read('health', {}, parseHealth),
    listSessions: (query) => readPage('listSessions', {}, query, (entry) => readSession(entry, onSkipped)),
    readSession: (session, signal) =>
      read('readSession', { ids: { session }, signal }, (value) => readSession(value, onSkipped)),
    listTurns: (session, query) =>
      readPage('listTurns', { session }, paging(query), (entry) => readTurn(entry, session)),
    listItems: (session, query) =>
      readPage('listItems', { session }, paging(query), (entry) => readItem(entry, session)),
    async readTurn(session, turn) {
      const route = await explorer.route('readTurn')
      if (!route.found) return null
      return read('readTurn', { ids: { session, turn } }, (value) => readTurn(value, session))
    },
    async listArtifacts(session) {
      const route = await explorer.route('listArtifacts')
      return route.found ? readAll('listArtifacts', { session }, parseArtifact) : null
    },
    async answer(session, call, answer, posting) {
      const body = (): JsonObject => ({
        ...bodyOf(explorer.found.answerBody, { session_id: session, call_id: call }),
        ...answer,
      })
      return outcomeOf(await send('answer', { ids: { session, call }, body, posting }), log)
    },
    async sendMessage(session, text, posting) {
      const body = (): JsonObject => bodyOf(explorer.found.messageBody, { text, session_id: session })
      await send('sendMessage', { ids: { session }, body, posting })
    },
    idempotent: () => explorer.found.idempotencyHeader !== null,
    listWebhooks: () => readAll('listWebhooks', {}, parseWebhook),
    createWebhook: (url, key): Promise<WebhookSubscription> =>
      read('createWebhook', { body: () => ({ url, events: [] }), posting: { key } }, parseWebhook),
    async deleteWebhook(webhook) {
      await send('deleteWebhook', { ids: { webhook } })
    },
    async openStream(cursor, signal) {
      const { path } = await routeOf('openStream')
      return openEvents(requester, path, cursor, signal)
    },
    clockOffset: () => offset.from(clock),
    clockOpen: () => offset.open,
    authorized: () => authorization.accepted,
    onAuthorization: (listener) => authorization.onChange(listener),
    discover: () => explorer.discover(),
    discovery: () => explorer.found,
    setToken: (token) => authorization.replace(token),
    share: (processes) => requester.share(processes),
    onRefused: (listener) => requester.onRefused(listener),
    credential: () => authorization.credentialAt(baseUrl),
    heed: (refused) => budget.heed(refused),
    budget: () => budget.remaining(),
    heldUntil: () => (budget.heldFor > 0 ? Math.ceil(clock.now() + budget.heldFor) : null),
    drain: () => requester.drain(),
    stop: () => requester.stop(),
  }
}

/** Only the list of sessions accepts a status; other lists refuse it. */
function paging({ limit, order, after }: ListQuery): ListQuery {
  return {
    ...(limit === undefined ? {} : { limit }),
    ...(order === undefined ? {} : { order }),
    ...(after === undefined ? {} : { after }),
  }
}

function queryOf(query: ListQuery = {}): string {
  const { limit, order, after, status } = query
  const parameters = new URLSearchParams()
  if (limit !== undefined) parameters.set('limit', String(limit))
  if (order !== undefined) parameters.set('order', order)
  if (after !== undefined) parameters.set('after', after)
  if (status !== undefined) parameters.set('status', status)
  return parameters.size === 0 ? '' : `?${parameters.toString()}`
}

/** The service accepted the answer: an unreadable reply to it must not look like a failure. */
function outcomeOf(reply: HttpReply, log: Log): string | null {
  try {
    return parseOutcome(readJson(reply.body))
  } catch (error) {
    log.warn({ fault: messageOf(error) }, 'the reply to an answer could not be parsed')
    return null
  }
}

function malformed(operation: string, reply: HttpReply, cause: unknown): ServiceError {
  return new ServiceError({
    code: 'malformed_answer',
    status: reply.status,
    message: `${operation}: ${messageOf(cause)}`,
    requestId: reply.headers['x-request-id'] ?? null,
    cause,
  })
}

/**
 * How many entries of each list fit into one answer. A session may have 16 MiB (rule LIM-02), so a page of a hundred
 * sessions can be longer than the longest answer that is read. Then a shorter page is requested.
 */
class PageRoom {
  readonly #most = new Map<string, number>()

  /**
   * Requests a page of `wanted` entries, and half as many when the answer is too long.
   * @throws what `ask` throws, and when a single entry is too long.
   */
  async ask<T>(list: string, wanted: number, ask: (limit: number) => Promise<T>): Promise<T> {
    let limit = Math.min(wanted, this.#most.get(list) ?? wanted)
    for (;;) {
      try {
        const page = await ask(limit)
        if (limit < wanted) this.#most.set(list, Math.ceil(limit * GROWTH))
        return page
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'answer_too_large' || limit <= 1) throw error
        limit = Math.floor(limit / 2)
        this.#most.set(list, limit)
      }
    }
  }
}
