import type { HttpReply, HttpRequest } from '../../../src/std/ports.ts'
import type { Agenda } from '../agenda.ts'
import type { Chance } from '../chance.ts'
import type { Fault } from '../faults.ts'
import { TOKEN } from '../oracle/secrets.ts'
import type { Sites } from '../sites.ts'
import { refusal, type Api, type Asked, type Said } from './api.ts'
import type { Slots } from './slots.ts'
import type { ServiceState } from './state.ts'

/** What the service saw of one request that had an effect, or should have. */
export interface Posting {
  /** True times at which it was sent and arrived. */
  sent: number
  at: number
  operation: 'answer' | 'message' | 'create webhook'
  callId: string | null
  key: string | null
  body: string
  status: number
  outcome: string | null
}

const LISTS_OF_A_SESSION = new Set(['list turns', 'list items', 'list artifacts'])

/** The service as a host: tokens, budgets, idempotency, and what goes wrong before or after it acts. */
export class ServiceHost {
  readonly #agenda: Agenda
  readonly #chance: Chance
  readonly #sites: Sites
  readonly #state: ServiceState
  readonly #api: Api
  readonly #slots: Slots
  /** Several processes have the token. */
  readonly #isShared: boolean
  readonly #replies = new Map<string, Said>()
  /** Lists that cannot be read, and until when (true time). */
  readonly #unreadable = new Map<string, number>()
  /** True time: the reads bucket refills then. */
  #limitedUntil = 0
  token = `${TOKEN}one`
  accepts = true
  readonly postings: Posting[] = []

  constructor(parts: {
    agenda: Agenda
    chance: Chance
    sites: Sites
    state: ServiceState
    api: Api
    slots: Slots
    isShared: boolean
  }) {
    this.#agenda = parts.agenda
    this.#chance = parts.chance
    this.#sites = parts.sites
    this.#state = parts.state
    this.#api = parts.api
    this.#slots = parts.slots
    this.#isShared = parts.isShared
  }

  ask(request: Pick<HttpRequest, 'method' | 'url' | 'body'>): Asked | null {
    return this.#api.ask(request.method, new URL(request.url), request.body?.toString())
  }

  /** `sent`: true time. `lives`: the process that sent it is still there, leads, and has not given it up. */
  serve(
    asked: Asked,
    request: Pick<HttpRequest, 'headers' | 'body'>,
    { sent, lives = true }: { sent: number; lives?: boolean },
  ): HttpReply {
    const { operation } = asked
    const possible: Fault[] = ['bad_gateway', 'internal_error', 'directory']
    if (operation !== 'discover') possible.push('rate_limit')
    if (LISTS_OF_A_SESSION.has(operation)) possible.push('unreadable')
    // An answer that is refused is followed by the error, once; that one is not refused.
    if (typeof asked.body['output'] === 'string') possible.push('project_limit')
    const fault = this.#sites.pass(`service ${operation}`, 'before', possible)
    const said = this.#gate(asked, request, { fault, lives }) ?? this.#act(asked, request)
    this.#note({ asked, request, sent, said })
    // It acted, and failed to say so.
    return this.#reply(fault === 'internal_error' ? refusal(500, 'internal_error') : said)
  }

  #gate(
    asked: Asked,
    request: Pick<HttpRequest, 'headers'>,
    { fault, lives }: { fault: Fault | null; lives: boolean },
  ): Said | null {
    const { operation } = asked
    if (fault === 'bad_gateway') return { status: 502, body: '<html>bad gateway</html>' }
    // Some waits are long enough for the processes to report them to each other.
    const isLong = this.#isShared && this.#chance.is(0.3)
    const wait = String(isLong ? this.#chance.int(8, 12) : this.#chance.int(1, 4))
    if (fault === 'directory') return refusal(503, 'directory_unavailable', { 'retry-after': wait })
    if (operation === 'discover') return null
    if (!this.accepts || request.headers['authorization'] !== `Bearer ${this.token}`) {
      return refusal(401, this.#state.details.code401, { 'www-authenticate': 'Bearer realm=service' })
    }
    if (this.#isUnreadable(asked, fault)) return refusal(500, 'internal_error')
    if (fault === 'project_limit') return refusal(429, 'project_limit_exceeded')
    if (fault === 'rate_limit') this.#limitedUntil = this.#agenda.now + Number(wait) * 1000
    const left = Math.ceil((this.#limitedUntil - this.#agenda.now) / 1000)
    const more = Math.max(left, operation === 'stream' ? (this.#slots.refusal(lives) ?? 0) : 0)
    return more > 0 ? refusal(429, 'rate_limit_exceeded', { 'retry-after': String(more) }) : null
  }

  /** One list of one session, and for long: everything else of it goes on. */
  #isUnreadable({ operation, ids }: Asked, fault: Fault | null): boolean {
    const list = `${operation} ${ids['session_id']}`
    if (fault === 'unreadable') this.#unreadable.set(list, this.#agenda.now + this.#chance.int(5, 60) * 1000)
    return (this.#unreadable.get(list) ?? 0) > this.#agenda.now
  }

  /** The same key replays the first answer instead of acting again. */
  #act(asked: Asked, { headers }: Pick<HttpRequest, 'headers'>): Said {
    const key = this.#keyOf(headers)
    const known = key === undefined ? undefined : this.#replies.get(key)
    if (known !== undefined) return known
    const said = this.#api.say(asked, this.#chance)
    if (key !== undefined && said.status < 300) this.#replies.set(key, said)
    return said
  }

  #keyOf(headers: HttpRequest['headers']): string | undefined {
    const { absent, idempotencyHeader } = this.#state.details
    return absent.has('idempotency header') ? undefined : headers[idempotencyHeader.toLowerCase()]
  }

  #note({
    asked,
    request: { headers, body },
    sent,
    said,
  }: {
    asked: Asked
    request: Pick<HttpRequest, 'headers' | 'body'>
    sent: number
    said: Said
  }): void {
    const { operation } = asked
    if (operation !== 'answer' && operation !== 'message' && operation !== 'create webhook') return
    const callId = asked.body['call_id']
    const reply = said.body
    this.postings.push({
      sent,
      at: this.#agenda.now,
      operation,
      callId: typeof callId === 'string' ? callId : null,
      key: this.#keyOf(headers) ?? null,
      body: body?.toString() ?? '',
      status: said.status,
      outcome:
        typeof reply === 'object' && reply !== null && 'outcome' in reply && typeof reply.outcome === 'string'
          ? reply.outcome
          : null,
    })
  }

  #reply({ status, body, headers }: Said): HttpReply {
    const { absent, rateHeaders } = this.#state.details
    return {
      status,
      headers: {
        'content-type': 'application/json',
        date: new Date(this.#state.now()).toUTCString(),
        ...(absent.has('rate headers')
          ? {}
          : { [rateHeaders.remaining.toLowerCase()]: '100', [rateHeaders.bucket.toLowerCase()]: 'reads' }),
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      truncated: false,
    }
  }
}
