import type { Chance } from '../chance.ts'
import { PLAIN } from '../scenario.ts'
import type { Agent } from './agent.ts'
import { documentOf } from './document.ts'
import type { ModelItem, ModelSession, ModelTurn, ServiceState } from './state.ts'
import type { Webhooks } from './webhooks.ts'

export interface Asked {
  operation: string
  ids: Record<string, string>
  query: URLSearchParams
  body: Record<string, unknown>
}

export interface Said {
  status: number
  body: unknown
  headers?: Record<string, string>
}

const LIMIT = 20

/** What the service answers to one request, in due form and with nothing going wrong. */
export class Api {
  readonly #state: ServiceState
  readonly #agent: Agent
  readonly #webhooks: Webhooks
  readonly #document: string
  readonly #routes: readonly [string, string, RegExp, string[]][]

  constructor(state: ServiceState, agent: Agent, webhooks: Webhooks) {
    this.#state = state
    this.#agent = agent
    this.#webhooks = webhooks
    const { details } = state
    this.#document = documentOf(details)
    const session = '/v1/sessions/{session_id}'
    const routes: [string, string, string | null][] = [
      ['discover', 'GET', '/v1/openapi.json'],
      ['health', 'GET', '/v1/health'],
      ['stream', 'GET', '/v1/events'],
      ['list sessions', 'GET', '/v1/sessions'],
      ['read session', 'GET', session],
      ['list turns', 'GET', `${session}/turns`],
      ['list items', 'GET', `${session}/items`],
      ['read turn', 'GET', details.turnPath],
      ['list artifacts', 'GET', details.artifactsPath],
      ['answer', 'POST', details.answerPath],
      ['message', 'POST', details.messagePath],
      ['list webhooks', 'GET', '/v1/webhooks'],
      ['create webhook', 'POST', '/v1/webhooks'],
      ['delete webhook', 'DELETE', '/v1/webhooks/{webhook_id}'],
    ]
    this.#routes = routes.flatMap(([operation, method, path]) =>
      path === null ? [] : [compile(operation, method, path)],
    )
  }

  ask(method: string, url: URL, body: string | undefined): Asked | null {
    for (const [operation, verb, pattern, names] of this.#routes) {
      const match = verb === method ? pattern.exec(url.pathname) : null
      if (match === null) continue
      const ids = Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')]))
      const parsed: unknown = body === undefined ? {} : JSON.parse(body)
      return { operation, ids, query: url.searchParams, body: parsed as Record<string, unknown> }
    }
    return null
  }

  say(asked: Asked, chance: Chance): Said {
    const { operation, ids, body } = asked
    switch (operation) {
      case 'discover':
        return { status: 200, body: this.#document }
      case 'stream':
        return { status: 200, body: '' }
      case 'health':
        return {
          status: 200,
          body: {
            object: 'health',
            status: 'ok',
            version: 'v1',
            scopes: [],
            usable: true,
            missing_scopes: [],
          },
        }
      case 'list sessions': {
        const status = asked.query.get('status')
        const all = this.#state.alive().filter((session) => status === null || session.status === status)
        return this.#page(asked, all, sessionBody)
      }
      case 'list webhooks':
        return {
          status: 200,
          body: {
            object: 'list',
            data: this.#webhooks.subscriptions.map(({ id, url, active }) => ({ id, url, active })),
            has_more: false,
          },
        }
      case 'create webhook':
        return {
          status: 200,
          body: {
            object: 'webhook.subscription',
            events: [],
            ...this.#webhooks.subscribe(String(body['url'])),
          },
        }
      case 'delete webhook':
        return this.#webhooks.unsubscribe(ids['webhook_id'] ?? '')
          ? { status: 200, body: { deleted: true } }
          : notFound()
    }
    const session = this.#state.sessions.get(ids['session_id'] ?? '')
    if (session === undefined || session.deleted) return notFound()
    return this.#about(session, asked, chance)
  }

  #about(session: ModelSession, asked: Asked, chance: Chance): Said {
    switch (asked.operation) {
      case 'read session':
        return { status: 200, body: sessionBody(session) }
      case 'list turns':
        return this.#page(asked, session.turns, turnBody)
      case 'read turn': {
        const turn = session.turns.find(({ id }) => id === asked.ids['turn_id'])
        return turn === undefined ? notFound() : { status: 200, body: turnBody(turn) }
      }
      case 'list items':
        return this.#page(asked, session.items, (item) => itemBody(session, item))
      case 'list artifacts':
        return {
          status: 200,
          body: {
            object: 'list',
            has_more: false,
            data: session.artifacts.map(({ id, turnId }) => ({
              id,
              object: 'artifact',
              ...(this.#state.details.artifactTurn ? { turn_id: turnId } : {}),
            })),
          },
        }
      case 'message':
        return this.#agent.message(session, { ...PLAIN, text: textIn(asked.body) })
          ? { status: 202, body: { queued: session.queue.length > 0 } }
          : refusal(this.#state.details.queueFull, 'queue_full')
      case 'answer':
        return this.#answer(session, asked, chance)
      default:
        return notFound()
    }
  }

  #answer(session: ModelSession, { body }: Asked, chance: Chance): Said {
    const call = this.#state.calls.get(String(body['call_id']))
    if (call === undefined || call.goneAt !== null)
      return chance.is(0.5) ? notFound() : refusal(409, 'conflict')
    const text = JSON.stringify({ output: body['output'], error: body['error'] })
    if (!call.plan.held) {
      this.#agent.drop(session, call)
      return { status: 200, body: { outcome: 'not_delivered' } }
    }
    if (call.plan.refusesOutput && typeof body['output'] === 'string') {
      call.refused = true
      return refusal(400, 'invalid_request')
    }
    call.taken = text
    this.#agent.answered(session, call)
    const { outcome } = this.#state.details
    return { status: 200, body: outcome === null ? { object: 'ok' } : { outcome } }
  }

  /** A cursor that cannot be placed gives an empty page. */
  #page<T extends { id: string }>(asked: Asked, all: readonly T[], body: (one: T) => object): Said {
    const order = asked.query.get('order') ?? 'desc'
    const sorted = order === 'asc' ? [...all] : all.toReversed()
    const limit = Math.min(Number(asked.query.get('limit') ?? LIMIT), this.#state.details.pageMax)
    const after = asked.query.get('after')
    const from = after === null ? 0 : sorted.findIndex(({ id }) => id === after) + 1
    const page = after !== null && from === 0 ? [] : sorted.slice(from, from + limit)
    const more = page.length > 0 && from + page.length < sorted.length
    return {
      status: 200,
      body: { object: 'list', data: page.map(body), has_more: more, last_id: page.at(-1)?.id ?? '' },
    }
  }
}

export function refusal(status: number, code: string, headers: Record<string, string> = {}): Said {
  return { status, body: { error: { code, message: code, request_id: 'req_1' } }, headers }
}

/** The text of a message, as one of the two forms has it. */
function textIn(body: Record<string, unknown>): string {
  const event = (body['event'] ?? body) as Record<string, unknown>
  return String(event['text'] ?? event['content'])
}

function notFound(): Said {
  return refusal(404, 'not_found')
}

function compile(operation: string, method: string, path: string): [string, string, RegExp, string[]] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return [
    operation,
    method,
    new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
    names,
  ]
}

export function sessionBody(session: ModelSession): object {
  return {
    object: 'session',
    id: session.id,
    status: session.status,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    title: 'Work',
    metadata: session.metadata,
    created_by_token: session.createdBy,
    required_actions: session.actions.map(({ type, callId, turnId, createdAt, expiresAt, call }) => ({
      type,
      turn_id: turnId,
      call_id: callId,
      created_at: createdAt,
      expires_at: expiresAt,
      ...(call === null ? {} : { name: call.plan.tool, arguments: { of: callId } }),
    })),
  }
}

function turnBody(turn: ModelTurn): object {
  return {
    object: 'turn',
    id: turn.id,
    session_id: turn.sessionId,
    status: turn.status,
    created_at: turn.createdAt,
    started_at: turn.startedAt,
    completed_at: turn.completedAt,
    artifacts: turn.artifacts,
    artifacts_skipped: turn.skipped,
  }
}

function itemBody(session: ModelSession, { id, type, event, createdAt, content }: ModelItem): object {
  return {
    object: 'item',
    id,
    session_id: session.id,
    type,
    created_at: createdAt,
    role: 'user',
    content,
    detail: { event },
  }
}
