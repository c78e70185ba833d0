import { createHmac, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Fields } from './app.ts'
import { listen, type Listening } from './listen.ts'
import { OTHER_DOCUMENT } from './other-document.ts'

export const OTHER_TOKEN = 'svc_pat_other'

interface OtherSession extends Fields {
  id: string
  status: string
  updated_at: number
  required_actions: Fields[]
}

interface OtherTurn extends Fields {
  id: string
  session_id: string
  status: string
  artifacts: string | null
}

/**
 * A service of another make. It keeps every rule of `src/protocol/rules.md`, and where a rule leaves a choice it
 * chooses neither profile of the emulator. It shares no line with the emulator. A test moves it step by step.
 */
export class OtherService implements AsyncDisposable {
  readonly url: string
  readonly answers: (Fields & { sessionId: string; once: string | undefined })[] = []
  readonly messages: Fields[] = []
  /** Requests that it refused as not of the interface: the sidecar must never make one. */
  readonly refused: string[] = []
  /** Says what becomes of an answer. */
  outcome = 'handed_over'
  /** Frames of one replay. */
  replay = 5
  readonly #sessions = new Map<string, OtherSession>()
  readonly #turns: OtherTurn[] = []
  readonly #log: { seq: number; text: string }[] = []
  readonly #readers = new Set<ServerResponse>()
  readonly #hooks = new Map<string, { id: string; url: string; secret: string }>()
  readonly #listening: Listening
  #time = Date.now()

  private constructor(listening: Listening) {
    this.#listening = listening
    this.url = listening.url
  }

  static async start(): Promise<OtherService> {
    let service: OtherService | undefined
    const listening = await listen((request, response) => void service?.receive(request, response))
    service = new OtherService(listening)
    return service
  }

  session(): string {
    const id = randomUUID()
    this.#sessions.set(id, {
      object: 'session',
      id,
      status: 'idle',
      created_at: this.#tick(),
      updated_at: this.#time,
      title: 'other',
      metadata: {},
      required_actions: [],
      colour: 'a field of tomorrow',
    })
    return id
  }

  begin(sessionId: string): string {
    const turn: OtherTurn = {
      object: 'turn',
      id: `turn_${randomUUID()}`,
      session_id: sessionId,
      status: 'working',
      created_at: this.#tick(),
      started_at: this.#time,
      artifacts: null,
    }
    this.#turns.push(turn)
    this.#move(sessionId, 'working')
    this.#emit(sessionId, turn.id, 'turn.started', {})
    return turn.id
  }

  say(turnId: string, text: string): void {
    this.#emit(this.#turn(turnId).session_id, turnId, 'agent.message', { text })
  }

  ask(turnId: string, name: string, args: unknown): string {
    const { session_id: sessionId } = this.#turn(turnId)
    const call_id = `fc-${randomUUID()}`
    const entry = {
      type: 'function_call',
      turn_id: turnId,
      call_id,
      name,
      arguments: args,
      created_at: this.#tick(),
      expires_at: null,
    }
    this.#session(sessionId).required_actions.push(entry)
    this.#move(sessionId, 'requires_action')
    this.#emit(sessionId, turnId, 'tool.required', { name, arguments: args, callId: call_id })
    return call_id
  }

  /** Ends a turn; its artifacts are final at once. */
  end(turnId: string, status: string, artifacts = 'ready'): void {
    const turn = this.#turn(turnId)
    Object.assign(turn, { status, completed_at: this.#tick(), artifacts })
    this.#emit(turn.session_id, turnId, 'turn.ended', {})
    this.#move(turn.session_id, 'idle')
    this.#send(status === 'failed' ? 'turn.failed' : 'turn.completed', turn.session_id, turnId)
  }

  /** A frame that names no session, of an unknown event. */
  announce(text: string): void {
    this.#emit(null, null, 'organization.announced', { text })
  }

  dropStreams(): void {
    for (const response of this.#readers) response.destroy()
  }

  get lastSeq(): number {
    return this.#log.length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropStreams()
    await this.#listening[Symbol.asyncDispose]()
  }

  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url ?? '', this.url)
    const asked = `${request.method} ${url.pathname}`
    const body = chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Fields)
    const reply = (status: number, value: unknown) =>
      void response
        .writeHead(status, {
          'content-type': 'application/json',
          'x-quota-left': '999',
          'x-quota-name': 'everything',
        })
        .end(JSON.stringify(value))
    const refuse = (status: number, code: string) => {
      if (status === 400) this.refused.push(`${asked}${url.search} ${JSON.stringify(body)}`)
      reply(status, { error: { code, message: `${code}: ${asked}`, request_id: 'other' } })
    }
    if (asked === 'GET /v1/openapi.json') return reply(200, OTHER_DOCUMENT)
    if (request.headers.authorization !== `Bearer ${OTHER_TOKEN}`) return refuse(401, 'who_are_you')
    if (asked === 'GET /v1/events') return this.#open(request, response)
    if (asked === 'GET /v1/health')
      return reply(200, {
        object: 'health',
        status: 'ok',
        version: 'v1',
        scopes: SCOPES,
        usable: true,
        missing_scopes: [],
      })
    const known = ROUTES.find(([pattern]) => pattern.test(asked))
    if (known === undefined) return refuse(404, 'not_found')
    const [pattern, query, fields] = known
    if ([...url.searchParams.keys()].some((key) => !query.includes(key)))
      return refuse(400, 'invalid_request')
    if (Object.keys(body).some((key) => !fields.includes(key))) return refuse(400, 'invalid_request')
    const [, id = ''] = pattern.exec(asked) ?? []
    if (url.pathname.startsWith('/v1/sessions/') && !this.#sessions.has(id)) return refuse(404, 'not_found')
    const said = this.#answer(asked, id, url.searchParams, body, request.headers['x-once'])
    return said === null ? refuse(400, 'invalid_request') : reply(200, said)
  }

  #answer(
    asked: string,
    id: string,
    query: URLSearchParams,
    body: Fields,
    once: string | string[] | undefined,
  ): unknown {
    if (asked === 'GET /v1/sessions') {
      const status = query.get('status')
      return pageOf(
        [...this.#sessions.values()].filter((session) => status === null || session.status === status),
        query,
      )
    }
    if (asked === 'GET /v1/webhooks')
      return pageOf(
        [...this.#hooks.values()].map((hook) => ({
          object: 'webhook.subscription',
          id: hook.id,
          url: hook.url,
          events: [],
          active: true,
        })),
        query,
      )
    if (asked === 'POST /v1/webhooks') {
      const hook = {
        id: `whsub_${this.#hooks.size}`,
        url: String(body['url']),
        secret: 'another make of secret',
      }
      this.#hooks.set(hook.id, hook)
      return { object: 'webhook.subscription', ...hook, events: [], active: true }
    }
    if (asked.startsWith('DELETE /v1/webhooks/'))
      return { object: 'webhook.subscription', id, deleted: this.#hooks.delete(id) }
    if (asked.endsWith('/turns'))
      return pageOf(
        this.#turns.filter(({ session_id }) => session_id === id),
        query,
      )
    if (asked.endsWith('/items')) return pageOf([], query)
    if (asked.endsWith('/products'))
      return pageOf([{ object: 'artifact', id: 'art_1', turnId: this.#turns[0]?.id }], query)
    if (asked.endsWith('/say')) {
      if (body['kind'] !== 'text' || typeof body['body'] !== 'string') return null
      this.messages.push(body)
      return { object: 'utterance', queued: false }
    }
    if (asked.endsWith('/tool_outputs')) return this.#take(id, body, once)
    return this.#session(id)
  }

  #take(sessionId: string, body: Fields, once: string | string[] | undefined): unknown {
    this.answers.push({ sessionId, once: once?.toString(), ...body })
    const session = this.#session(sessionId)
    const action = session.required_actions.find(({ call_id }) => call_id === body['call_id'])
    if (action !== undefined) {
      session.required_actions = session.required_actions.filter((other) => other !== action)
      this.#move(sessionId, 'working')
      this.#emit(sessionId, String(action['turn_id']), 'tool.resolved', { callId: action['call_id'] })
    }
    return { object: 'tool_output', outcome: this.outcome }
  }

  #open(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write('\uFEFFretry: 50\r\n\r\n: hello\r\n\r\n')
    const cursor = request.headers['last-event-id']
    if (cursor !== undefined) {
      const missed = this.#log.filter(({ seq }) => seq > Number(cursor))
      for (const { text } of missed.slice(0, this.replay)) response.write(text)
      if (missed.length > this.replay) {
        const data = {
          type: 'stream.truncated',
          internal_type: 'x',
          seq: null,
          payload: { from_seq: String(missed[this.replay]?.seq) },
        }
        response.write(`event: stream.truncated\r\ndata: ${JSON.stringify(data)}\r\n\r\n`)
        return
      }
    }
    this.#readers.add(response)
    response.on('close', () => this.#readers.delete(response))
  }

  #emit(sessionId: string | null, turnId: string | null, type: string, payload: Fields): void {
    const seq = this.#log.length + 1
    const named = {
      ...(sessionId === null ? {} : { sessionId }),
      ...(turnId === null ? {} : { turn: { id: turnId } }),
    }
    const data = JSON.stringify({
      type,
      internal_type: `other/${type}`,
      seq,
      payload: { ...payload, ...named },
    })
    const text = `event: ${type}\r\nid: ${seq}\r\ndata: ${data}\r\n\r\n`
    this.#log.push({ seq, text })
    for (const response of this.#readers) response.write(text)
  }

  #move(sessionId: string, status: string): void {
    const session = this.#session(sessionId)
    session.updated_at = this.#tick()
    session.status = status
    this.#send(
      status === 'requires_action' ? 'session.action_required' : `session.${status}`,
      sessionId,
      null,
    )
  }

  /** Sends a webhook once, in an envelope of its own; whether it arrives is not its concern. */
  #send(name: string, sessionId: string, turnId: string | null): void {
    const body = JSON.stringify({
      specimen: {
        what: name,
        data: { session: { id: sessionId }, ...(turnId === null ? {} : { turn: { id: turnId } }) },
      },
    })
    for (const { url, secret } of this.#hooks.values()) {
      const timestamp = String(Date.now())
      const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
      const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature }
      fetch(url, { method: 'POST', body, headers }).catch(() => undefined)
    }
  }

  #session(id: string): OtherSession {
    const session = this.#sessions.get(id)
    if (session === undefined) throw new Error(`no session ${id}`)
    return session
  }

  #turn(id: string): OtherTurn {
    const turn = this.#turns.find((turn) => turn.id === id)
    if (turn === undefined) throw new Error(`no turn ${id}`)
    return turn
  }

  /** Never the same millisecond twice. */
  #tick(): number {
    this.#time = Math.max(this.#time + 0.25, performance.timeOrigin + performance.now())
    return this.#time
  }
}

const SCOPES = ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read']
const PAGE = ['limit', 'after', 'order']

/** Method and path, the query parameters and the body's fields that are known there. */
const ROUTES: readonly [RegExp, readonly string[], readonly string[]][] = [
  [/^GET \/v1\/sessions$/, [...PAGE, 'status'], []],
  [/^GET \/v1\/sessions\/([^/]+)$/, [], []],
  [/^GET \/v1\/sessions\/([^/]+)\/(?:turns|items)$/, PAGE, []],
  [/^GET \/v1\/sessions\/([^/]+)\/products$/, [], []],
  [/^POST \/v1\/sessions\/([^/]+)\/say$/, [], ['kind', 'body', 'lang']],
  [/^POST \/v1\/sessions\/([^/]+)\/tool_outputs$/, [], ['call_id', 'output', 'error']],
  [/^GET \/v1\/webhooks$/, PAGE, []],
  [/^POST \/v1\/webhooks$/, [], ['url', 'events']],
  [/^DELETE \/v1\/webhooks\/([^/]+)$/, [], []],
]

/** The newest first unless asked otherwise; `last_id` is left out of a list without entries. */
function pageOf(rows: readonly Fields[], query: URLSearchParams): Fields {
  const sorted = query.get('order') === 'asc' ? [...rows] : rows.toReversed()
  const after = query.get('after')
  const from = after === null ? 0 : sorted.findIndex(({ id }) => id === after) + 1
  const limit = Number(query.get('limit') ?? 20)
  const data = after !== null && from === 0 ? [] : sorted.slice(from, from + limit)
  const last = data.at(-1)
  return {
    object: 'list',
    data,
    has_more: sorted.length > from + data.length && data.length > 0,
    ...(last === undefined ? {} : { last_id: last['id'] }),
  }
}
