import PQueue from 'p-queue'
import { backoff } from '../core/backoff.ts'
import { NetworkFault, ServiceError } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import type { Clock, Http, HttpReply, Log, Random } from '../core/ports.ts'
import type { Authorization } from './authorization.ts'
import type { Budget } from './budget.ts'
import { classify, refusedBeforeActing, unanswered, worthRepeating } from './classify.ts'
import type { Refusal } from './classify.ts'
import type { RateHeaders } from './headers.ts'
import type { Method } from './openapi.ts'
import type { ClockOffset } from './offset.ts'

/** One request of ours. */
export interface Call {
  operation: string
  method: Method
  /** Below the base address, filled in, with its query. */
  path: string
  body?: Json
  /** The same for every attempt at one effect. */
  key?: string
  /** Sends no token. */
  anonymous?: true
}

export interface RequesterOptions {
  baseUrl: string
  http: Http
  clock: Clock
  random: Random
  log: Log
  authorization: Authorization
  budget: Budget
  offset: ClockOffset
  /** What discovery knows by now. */
  idempotencyHeader: () => string | null
  rateHeaders: () => RateHeaders
  observe: ((seen: Observation) => void) | undefined
  onRetry: ((code: string) => void) | undefined
  /** Milliseconds for one attempt. */
  timeout: number
  /** Milliseconds for a request with all its waits and attempts. */
  patience: number
  maxInFlight: number
}

export interface Observation {
  operation: string
  /** `2xx` … `5xx`, or `none` when no answer came. */
  statusClass: string
  seconds: number
}

/** The bucket that a request draws on, until an answer names another: none of ours creates a session. */
const READS = 'reads'
/** Bytes of an answer: a page of 100 sessions with long instructions stays below. */
const ANSWER_MAX = 8 * 1024 * 1024
const ATTEMPTS_MAX = 4
/** Between attempts, milliseconds. */
const PAUSE = { base: 250, max: 5000 }
/** Requests that wait for their turn; whoever asks for more has lost count. */
const WAITING_MAX = 1000

/** Every request to the service goes through here: who may send, when, how often, and what came of it. */
export class Requester {
  readonly #options: RequesterOptions
  readonly #queue: PQueue
  readonly #stop = new AbortController()

  constructor(options: RequesterOptions) {
    this.#options = options
    this.#queue = new PQueue({ concurrency: options.maxInFlight })
  }

  get stopped(): AbortSignal {
    return this.#stop.signal
  }

  /**
   * @returns a 2xx answer.
   * @throws {ServiceError} once it is certain, or patience or attempts are used up.
   */
  async send(call: Call): Promise<HttpReply> {
    const { clock, random, patience, onRetry, log } = this.#options
    const deadline = clock.steady() + patience
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call, deadline)
      } catch (error) {
        if (!(error instanceof ServiceError) || !this.#mayRepeat(call, error)) throw error
        // A used-up budget is waited for in its own queue, in order, and is nobody's failed attempt.
        const limited = error.code === 'rate_limit_exceeded'
        if (limited) attempt--
        else if (attempt >= ATTEMPTS_MAX) throw error
        const pause = limited ? 0 : backoff(PAUSE, attempt, random, error.retryAfter ?? 0)
        const earliest = clock.steady() + Math.max(pause, error.retryAfter ?? 0)
        if (earliest > deadline) throw error
        log.debug({ operation: call.operation, code: error.code, attempt, pause }, 'trying again')
        onRetry?.(error.code)
        await this.#sleep(pause)
      }
    }
  }

  /** Fails whatever is under way or waits. */
  stop(): void {
    this.#stop.abort()
    this.#options.budget.stop(stopped())
  }

  #mayRepeat(call: Call, error: ServiceError): boolean {
    if (this.#stop.signal.aborted || !worthRepeating(error)) return false
    const keyed = call.key !== undefined && this.#options.idempotencyHeader() !== null
    return call.method === 'GET' || keyed || refusedBeforeActing(error)
  }

  async #attempt(call: Call, deadline: number): Promise<HttpReply> {
    const { authorization, budget, clock } = this.#options
    for (;;) {
      authorization.token()
      const bucket = budget.bucketOf(call.operation, READS)
      await budget.enter(bucket, deadline - clock.steady())
      let taken = false
      try {
        const reply = await this.#inTurn(() => (budget.wait(bucket) > 0 ? null : this.#once(call)))
        taken = reply !== null
        // The budget ran out while the request waited for its turn: it waits again, unsent.
        if (reply !== null) return reply
      } catch (error) {
        taken = error instanceof ServiceError && error.status !== 0 && error.code !== 'rate_limit_exceeded'
        throw error
      } finally {
        budget.leave(bucket, taken)
      }
    }
  }

  async #inTurn<T>(run: () => T | Promise<T>): Promise<T> {
    if (this.#queue.size >= WAITING_MAX) {
      const message = `${WAITING_MAX} requests wait for the service already`
      throw new ServiceError({ code: 'overloaded', status: 0, message })
    }
    return this.#queue.add(async () => run())
  }

  async #once(call: Call): Promise<HttpReply> {
    const { http, clock, baseUrl, timeout, maxInFlight, authorization } = this.#options
    const token = authorization.token()
    const sent = clock.now()
    const started = clock.steady()
    try {
      const reply = await http.exchange({
        method: call.method,
        url: baseUrl + call.path,
        headers: this.#headers(call, token),
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        timeout,
        maxBody: ANSWER_MAX,
        connections: maxInFlight,
        signal: this.#stop.signal,
      })
      this.note(call.operation, reply, sent, started)
      if (reply.status >= 300)
        throw this.refusal(call.operation, reply, call.anonymous === true ? null : token)
      if (!reply.truncated) return reply
      const message = `the answer is longer than ${ANSWER_MAX} bytes`
      throw new ServiceError({ code: 'answer_too_large', status: reply.status, message })
    } catch (error) {
      if (!(error instanceof NetworkFault)) throw error
      this.note(call.operation, null, sent, started)
      throw this.#stop.signal.aborted ? stopped() : unanswered(error)
    }
  }

  #headers(call: Call, token: string): Record<string, string> {
    const headers: Record<string, string> = {
      accept: 'application/json',
      'user-agent': 'agent-session-sidecar',
    }
    if (call.anonymous !== true) headers['authorization'] = `Bearer ${token}`
    if (call.body !== undefined) headers['content-type'] = 'application/json'
    const name = this.#options.idempotencyHeader()
    if (call.key !== undefined && name !== null) headers[name] = call.key
    return headers
  }

  /** Learns from an answer, whatever it says; null when none came. `sent` is wall clock, `started` the steady one. */
  note(
    operation: string,
    reply: Pick<HttpReply, 'status' | 'headers'> | null,
    sent: number,
    started: number,
  ): void {
    const { clock, offset, budget, rateHeaders, observe } = this.#options
    const statusClass = reply === null ? 'none' : `${Math.floor(reply.status / 100)}xx`
    observe?.({ operation, statusClass, seconds: (clock.steady() - started) / 1000 })
    if (reply === null) return
    offset.learn(reply.headers['date'], sent, clock.now())
    budget.learn(operation, READS, reply.headers, rateHeaders())
  }

  /** The error of an answer that is none of 2xx, with its consequences. `token` null: none was sent. */
  refusal(operation: string, reply: Refusal, token: string | null, bucket?: string): ServiceError {
    const { authorization, budget, clock, log } = this.#options
    const error = classify(reply, clock.now())
    const { code, status, requestId, retryAfter } = error
    if (status === 401 && code !== 'directory_unavailable' && token !== null) authorization.reject(token)
    if (code === 'rate_limit_exceeded') budget.close(bucket ?? budget.bucketOf(operation, READS), retryAfter)
    log.debug({ operation, code, status, requestId, retryAfter }, 'the service refused a request')
    return error
  }

  async #sleep(ms: number): Promise<void> {
    if (ms <= 0) return
    const { signal } = this.#stop
    await new Promise<void>((resolve, reject) => {
      const onStop = (): void => {
        timer.cancel()
        reject(stopped())
      }
      const timer = this.#options.clock.after(ms, () => {
        signal.removeEventListener('abort', onStop)
        resolve()
      })
      signal.addEventListener('abort', onStop, { once: true })
    })
  }
}

export function stopped(): ServiceError {
  return new ServiceError({ code: 'stopped', status: 0, message: 'the client of the service was stopped' })
}
