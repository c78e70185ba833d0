import { setTimeout as sleep } from 'node:timers/promises'
import { NetworkFault, OperatorError } from '../std/errors.ts'
import type { Http } from '../std/ports.ts'
import { retryAfter } from '../std/retry-after.ts'
import { codeOf, type Method, type Reply, type Sent } from './reply.ts'
import { Stuck } from './stuck.ts'

interface Asking {
  query?: Readonly<Record<string, string>>
  /** Sent as JSON; text is sent unchanged. */
  body?: unknown
  headers?: Readonly<Record<string, string>>
  /** Instead of the run's token; null sends none. */
  token?: string | null
}

interface DeploymentOptions {
  http: Http
  baseUrl: string
  token: string
  /** Ends the run: no new request is sent after this. */
  signal: AbortSignal
  /** Sees every answer. */
  onReply(reply: Reply): void
}

/** Milliseconds for one exchange. */
const EXCHANGE_TIMEOUT = 30_000
/** Bytes of an answer that are read. */
const LONGEST_ANSWER = 8 * 1024 * 1024
/**
 * A request is refused for a rate limit or an unreachable directory: the number of waits, and the longest wait in
 * milliseconds.
 */
const PATIENCE = 20
const LONGEST_WAIT = 30_000
/**
 * The number of consecutive exchanges without an answer after which the deployment counts as
 * unreachable.
 */
const FAULTS_MAX = 5

/** The service under test. Each request is limited in time and size. */
export class Deployment {
  readonly baseUrl: string
  readonly token: string
  readonly http: Http
  readonly signal: AbortSignal
  readonly #onReply: (reply: Reply) => void
  #faults = 0
  #waiting: Promise<void> = Promise.resolve()
  requests = 0

  constructor({ http, baseUrl, token, signal, onReply }: DeploymentOptions) {
    this.http = http
    this.baseUrl = baseUrl.replace(/\/+$/, '')
    this.token = token
    this.signal = signal
    this.#onReply = onReply
  }

  /**
   * Sends a request and returns its answer, with any status. Waits for `Retry-After` of a rate
   * limit or of an unreachable directory. @throws {Stuck} when there is no answer, or the run is
   * over.
   * @throws {OperatorError} when the deployment stopped answering altogether.
   */
  async call(method: Method, path: string, asking: Asking = {}): Promise<Reply> {
    if (this.signal.aborted) throw new Stuck(reasonOf(this.signal))
    const reply = await this.#send(method, path, asking, this.signal)
    if (waitOf(reply) === 0) return reply
    // Only one request waits at a time: several would compete for the budget, which is refilled slowly.
    const turn = this.#waiting.then(() => this.#again(reply, method, path, asking))
    this.#waiting = turn.then(nothing, nothing)
    return turn
  }

  /** Like `call`, without waiting, and also when the run is over: for the cleanup. */
  once(method: Method, path: string, asking: Asking = {}): Promise<Reply> {
    return this.#send(method, path, asking, undefined)
  }

  async #again(first: Reply, method: Method, path: string, asking: Asking): Promise<Reply> {
    let reply = first
    for (let attempt = 0; attempt < PATIENCE && waitOf(reply) > 0; attempt++) {
      await this.pause(Math.min(waitOf(reply), LONGEST_WAIT))
      reply = await this.#send(method, path, asking, this.signal)
    }
    return reply
  }

  /**
   * When the run ends, reads are aborted. A request that may have created a resource is not: its answer names what
   * must be removed.
   */
  async #send(method: Method, path: string, asking: Asking, signal: AbortSignal | undefined): Promise<Reply> {
    const sent = this.#request(method, path, asking)
    const authorization = asking.token === undefined ? this.token : asking.token
    this.requests++
    try {
      const answer = await this.http.exchange({
        method: method as 'GET',
        url: sent.url,
        headers: {
          ...sent.headers,
          ...(authorization === null ? {} : { authorization: `Bearer ${authorization}` }),
        },
        ...(sent.body === null ? {} : { body: sent.body }),
        timeout: EXCHANGE_TIMEOUT,
        maxBody: LONGEST_ANSWER,
        ...(signal === undefined || method !== 'GET' ? {} : { signal }),
      })
      this.#faults = 0
      const reply: Reply = {
        sent,
        status: answer.status,
        headers: answer.headers,
        text: answer.body,
        json: answer.truncated ? undefined : parse(answer.body),
      }
      this.#onReply(reply)
      return reply
    } catch (error) {
      if (!(error instanceof NetworkFault)) throw error
      if (signal?.aborted === true) throw new Stuck(reasonOf(signal))
      return this.#lost(`${method} ${path}`, error)
    }
  }

  #lost(what: string, fault: NetworkFault): never {
    this.#faults++
    if (this.#faults < FAULTS_MAX) throw new Stuck(`${what} got no answer: ${fault.message}`)
    throw new OperatorError(
      `${this.baseUrl} stopped answering (${fault.message}); ${FAULTS_MAX} requests failed in a row`,
    )
  }

  /** Waits `ms`, or until the run ends. @throws {Stuck} when the run ends. */
  async pause(ms: number): Promise<void> {
    try {
      await sleep(ms, undefined, { signal: this.signal })
    } catch {
      throw new Stuck(reasonOf(this.signal))
    }
  }

  url(path: string, query: Readonly<Record<string, string>> = {}): string {
    const search = new URLSearchParams(query).toString()
    return `${this.baseUrl}${path}${search === '' ? '' : `?${search}`}`
  }

  #request(method: Method, path: string, asking: Asking): Sent {
    const { query, body, headers = {}, token } = asking
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body)
    return {
      method,
      url: this.url(path, query),
      headers: { ...(text === null ? {} : { 'content-type': 'application/json' }), ...headers },
      body: text,
      authenticated: token === undefined,
    }
  }
}

/** Milliseconds to wait before the next attempt; 0 for a final answer. */
function waitOf(reply: Reply): number {
  const code = codeOf(reply)
  if (code !== 'rate_limit_exceeded' && code !== 'directory_unavailable') return 0
  return Math.max(250, retryAfter(reply.headers['retry-after'], Date.now()) ?? 0)
}

function nothing(): void {}

function reasonOf(signal: AbortSignal): string {
  return typeof signal.reason === 'string' ? signal.reason : 'the run was ended'
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
