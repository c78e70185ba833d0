import { request } from 'undici'
import { createMetrics, type Metrics } from '../../src/sidecar/admin/metrics.ts'
import type { AdminActions } from '../../src/sidecar/admin/actions.ts'
import { createAdmin, type AdminOptions } from '../../src/sidecar/admin/server.ts'
import type { StatusReport } from '../../src/sidecar/admin/routes/status.ts'
import { isObject, type JsonObject } from '../../src/std/json.ts'
import type { Store } from '../../src/core/store.ts'
import { clock, memoryLog, openStore } from './seed.ts'

export interface Reply {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** The body as JSON object; empty when it is none. */
  json: JsonObject
}

export interface Running {
  base: string
  store: Store
  metrics: Metrics
  log: ReturnType<typeof memoryLog>
  /** What the actions were asked to do. */
  asked: unknown[]
  get: (path: string, headers?: Record<string, string>) => Promise<Reply>
  post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>
  stop: () => Promise<void>
}

export const STATUS: StatusReport = {
  version: '1.2.3',
  started_at: 1,
  leader: true,
  replicas: [],
  channels: {
    stream: { state: 'live', since: 1, last_error: null, last_event_at: 2, lag_seconds: 0.1, last_seq: '12' },
    webhook: {
      state: 'disabled',
      since: 1,
      last_error: null,
      last_event_at: null,
      lag_seconds: null,
      last_seq: null,
    },
    poll: {
      state: 'live',
      since: 1,
      last_error: 'timeout',
      last_event_at: null,
      lag_seconds: null,
      last_seq: null,
    },
  },
  store: { state: 'accepting', since: 1, reason: null },
  needs_action: [],
  routes: [
    { operation: 'answer', method: 'POST', path: '/v1/x/{session_id}', how: 'document', reason: null },
    {
      operation: 'sendMessage',
      method: null,
      path: null,
      how: 'missing',
      reason: 'set service.routes.message_path',
    },
  ],
  discovery: [],
  queues: { deliveries_pending: 0, deliveries_dead: 0, calls_open: 0, sessions_to_read: 0 },
  throughput: [{ at: 1_700_000_000_000, facts: 3, delivered: 2, failed: 1, calls: 1 }],
  service: {
    base_url: 'https://agents.example.com',
    console_url: 'https://agents.example.com',
    held_until: null,
  },
  slots: { used: 1, limit: 25 },
  token: { state: 'accepted', scopes: ['sessions:read'], expires_at: null },
}

/** A running admin listener over a real store, with actions that write down what they were asked. */
export async function startAdmin(
  options: Partial<AdminOptions> & { actions?: AdminActions; seed?: (store: Store) => Promise<unknown> } = {},
): Promise<Running> {
  const store = openStore()
  await options.seed?.(store)
  const log = memoryLog()
  const asked: unknown[] = []
  const metrics = createMetrics({
    build: { version: '1.2.3', configuration: '0f' },
    store: () => store.read,
    clock,
    log,
    handlers: ['app', 'audit'],
    tools: ['lookup_order'],
  })
  const note = (name: string) => async (argument: unknown) => {
    asked.push([name, argument])
    return { count: 3 }
  }
  const actions: AdminActions = {
    retryDelivery: async (id) =>
      (await store.read.delivery(id))?.status === 'pending' ? { count: 0 } : await note('retryDelivery')(id),
    retryDeliveries: note('retryDeliveries'),
    replay: note('replay'),
    pauseHandler: async (name) => void asked.push(['pauseHandler', name]),
    resumeHandler: async (name) => void asked.push(['resumeHandler', name]),
    answerCall: async (callId, answer) => void asked.push(['answerCall', callId, answer]),
    testHandler: async (name, request) => {
      asked.push(['testHandler', name, request])
      return {
        id: 'evt_test_1',
        type: request.type,
        wanted: true,
        outcome: 'delivered',
        status: 204,
        error: null,
        answer: null,
        ms: 3,
      }
    },
    tools: () => [
      { type: 'function', name: 'lookup_order', description: 'Finds', parameters: { type: 'object' } },
      { type: 'function', name: 'refund', description: 'Pays back', parameters: { type: 'object' } },
    ],
    handlerNames: () => ['app', 'audit'],
    handlers: async () => [
      { name: 'app', state: 'up', since: 1, lastError: null },
      { name: 'audit', state: 'paused', since: 5, lastError: 'answered 410' },
    ],
  }
  const admin = createAdmin({
    listen: { host: '127.0.0.1', port: 0 },
    token: () => null,
    store: store.read,
    summary: (id) => store.resources.summary(id),
    actions,
    status: () => STATUS,
    metrics,
    ready: () => ({ ok: true, checks: [{ name: 'store', ok: true }] }),
    started: () => true,
    log,
    version: '1.2.3',
    ...options,
  })
  const { port } = await admin.listen()
  const base = `http://127.0.0.1:${port}`
  return {
    base,
    store,
    metrics,
    log,
    asked,
    get: (path, headers = {}) => send(base + path, { method: 'GET', headers }),
    post: (path, body, headers = {}) =>
      send(base + path, {
        method: 'POST',
        headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    async stop() {
      await admin.close()
      await store.close()
    },
  }
}

export async function send(url: string, options: Parameters<typeof request>[1]): Promise<Reply> {
  const answer = await request(url, options)
  const text = await answer.body.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = {}
  }
  return { status: answer.statusCode, headers: answer.headers, text, json: isObject(json) ? json : {} }
}

/** The entries of a list. */
export function dataOf(reply: Reply): JsonObject[] {
  return Array.isArray(reply.json['data']) ? reply.json['data'].filter(isObject) : []
}
