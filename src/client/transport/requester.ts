import { hash } from 'node:crypto'
import { backoff } from '../../std/backoff.ts'
import { ByteBuffer } from '../../std/byte-buffer.ts'
import { ClockOffset } from '../../std/clock-offset.ts'
import { NetworkFault } from '../../std/errors.ts'
import { ServiceError, type Beside } from '../../core/errors.ts'
import { headerSafe } from '../../std/header.ts'
import type { Json } from '../../std/json.ts'
import { pause } from '../../std/pause.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import { Slots } from '../../std/slots.ts'
import type { Clock, Http, HttpPool, HttpReply, HttpStream, Log, Random, Timer } from '../../std/ports.ts'
import { Budget, createWaitLog, type RefusedFor } from './budget.ts'
import { classify, concernsAll, refusedBeforeActing, unanswered, worthRepeating } from './classify.ts'
import type { Refusal } from './classify.ts'
import type { Posting } from '../../core/ports.ts'
import type { RateHeaders } from '../discovery/headers.ts'
import type { Method } from '../discovery/openapi.ts'

/** One request of ours. */
export interface Call {
  operation: string
  method: Method
  /** Below the base address, filled in, with its query. */
  path: string
  body?: Json
  /** The body as text, in place of `body`. */
  text?: string
  /** Of a request that has an effect. */
  posting?: Posting
  /** Sends no token. */
  anonymous?: true
  /** Not a GET, but idempotent. */
  repeatable?: true
  /** Called before a retry of an attempt that may have had its effect. */
  onRepeat?: () => void
  /** Milliseconds with all waits and attempts, in place of the client's. */
  patience?: number
  /** Ends the call at once. It must also abort when the client is closed. */
  signal?: AbortSignal
  /** The most bytes of the answer, in place of ANSWER_MAX. */
  maxAnswer?: number
}

export interface StreamCall {
  operation: string
  /** Below the base address, filled in, with its query. */
  path: string
  headers: Record<string, string>
  /** Ends the body, too. */
  signal: AbortSignal
  /** The bucket that `rate_limit_exceeded` closes, where the code means another limit than a rate. */
  bucket?: string
}

export interface RequesterOptions {
  baseUrl: string
  http: Http
  clock: Clock
  random: Random
  log: Log
  token: string
  /** The current result of discovery. */
  found: () => { idempotencyHeader: { name: string } | null; rateHeaders: RateHeaders }
  observe: ((seen: Observation) => void) | undefined
  onRetry: ((code: string) => void) | undefined
  onBudget: ((bucket: string, remaining: number) => void) | undefined
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

/** The bucket of a request, until an answer names another one. */
function usualBucket(operation: string): string {
  return CREATES.has(operation) ? 'creation' : 'reads'
}

const CREATES = new Set(['createSession', 'forkSession'])
/** Bytes of an answer. A session is created with up to 16 MiB (rule LIM-02); its resource may be longer. */
const ANSWER_MAX = 32 * 1024 * 1024
const ATTEMPTS_MAX = 4
/** A body that is read piece by piece may be an error instead: at most this many of its bytes are read. */
const REFUSAL_MAX = 64 * 1024
/** Between attempts, milliseconds. */
const PAUSE = { base: 250, max: 5000 }
/** A read that has no answer yet keeps its slot for so long while others wait, milliseconds. */
const PACE = 5000
/** So many times longer it keeps it if the last answers were slow. */
const SLOWER = 3
/** After one was ended, the reads of its subject are treated as slow for so long, milliseconds. */
const REMEMBERED = 300_000
/** The paths and subjects whose last failure is remembered. */
const FAILING = 1000
/** Requests that may wait for a slot; a program with more of them has a leak. */
const WAITING_MAX = 1000

/** A read under way that may be ended while others wait. */
interface PacedRead {
  /** Steady milliseconds. */
  since: number
  /** A read of its subject was ended before. */
  again: boolean
  pace: AbortController
}

/** The token, and whether the service still accepts it. A rejected token is never sent again (rule AUT-28). */
export class Authorization {
  #token: string
  #accepted = true
  readonly #listeners = new Set<(accepted: boolean) => void>()

  constructor(token: string) {
    this.#token = token.trim()
  }

  get accepted(): boolean {
    return this.#accepted
  }

  /** @throws {ServiceError} `unauthorized` after a rejection, until the token changes. */
  token(): string {
    if (this.#accepted) return this.#token
    throw new ServiceError({
      code: 'unauthorized',
      status: 401,
      message: 'the service rejected the token; no request is sent until it changes',
    })
  }

  /** A short hash of the token and of the address at which it is used. */
  credentialAt(baseUrl: string): string {
    return hash('sha256', `${baseUrl} ${this.#token}`).slice(0, 16)
  }

  /** No effect if `token` is the current token. */
  replace(token: string): void {
    if (token.trim() === this.#token) return
    this.#token = token.trim()
    this.#set(true)
  }

  /** The service rejected `token`. No effect if it was replaced in the meantime. */
  reject(token: string): void {
    if (token === this.#token) this.#set(false)
  }

  onChange(listener: (accepted: boolean) => void): void {
    this.#listeners.add(listener)
  }

  #set(accepted: boolean): void {
    if (this.#accepted === accepted) return
    this.#accepted = accepted
    for (const listener of this.#listeners) listener(accepted)
  }
}

/** Sends every request to the service: waits for slot and budget, retries, and reports the result. */
export class Requester {
  readonly authorization: Authorization
  readonly budget: Budget
  /** The service's clock minus ours, learned from the `Date` of its responses. */
  readonly offset = new ClockOffset()
  readonly #options: RequesterOptions
  readonly #slots: Slots
  readonly #pool: HttpPool
  readonly #stop = new AbortController()
  /** Ends the waits before repeated attempts. */
  readonly #drain = new AbortController()
  /** The reads under way that give their slots to others, the oldest first. */
  readonly #paces = new Set<PacedRead>()
  /** Fires when the oldest of them must give its slot to a request that waits. */
  #pacer: Timer | null = null
  /** When the last request of a path had no answer (steady milliseconds), and what its error showed. */
  readonly #failing = new BoundedMap<string, { at: number; beside: Beside }>(FAILING)
  /** When a read of a subject was ended because others waited, steady milliseconds. */
  readonly #outpaced = new BoundedMap<string, number>(FAILING)
  /** Until then the last answers count as slow, steady milliseconds. */
  #slowUntil = -Infinity
  /** When the last request of each operation succeeded, steady milliseconds. */
  readonly #succeeded = new Map<string, number>()
  #onRefused: ((refused: RefusedFor) => void) | null = null
  readonly #logWait: ReturnType<typeof createWaitLog>

  constructor(options: RequesterOptions) {
    this.#options = options
    this.authorization = new Authorization(options.token)
    this.budget = new Budget({
      clock: options.clock,
      random: options.random,
      onRemaining: options.onBudget,
      onRefused: (refused) => this.#onRefused?.(refused),
    })
    this.#logWait = createWaitLog(options.clock, options.log)
    this.#slots = new Slots(options.maxInFlight)
    this.#pool = { size: options.maxInFlight }
  }

  /** `processes` processes use our token: this one may have an equal part of the requests under way. */
  share(processes: number): void {
    this.#slots.resize(Math.max(1, Math.floor(this.#options.maxInFlight / processes)))
  }

  onRefused(listener: (refused: RefusedFor) => void): void {
    this.#onRefused = listener
  }

  get stopped(): AbortSignal {
    return this.#stop.signal
  }

  /**
   * @returns a 2xx answer.
   * @throws {ServiceError} when another attempt cannot help, or when patience or attempts are used up.
   */
  send(call: Call): Promise<HttpReply> {
    return this.#noted(call, () => this.persist(call, () => this.#once(call)))
  }

  /**
   * As `send`, for a read that its caller repeats later. Reads of eight sessions may hang until they time out, and everything
   * else would wait for their slots. So such a read ends with `outpaced` while others wait (`#keepPace`). `subject`: the session.
   */
  read(call: Call, subject: string): Promise<HttpReply> {
    return this.#noted(call, () => this.persist(call, () => this.#paced(call, subject)))
  }

  /**
   * Notes when the call succeeds. The error of a call without an answer shows whether others succeeded since the last such error
   * of its path: during an outage none does.
   */
  async #noted<T>({ path, operation }: Call, run: () => Promise<T>): Promise<T> {
    const { clock } = this.#options
    const begun = clock.steady()
    try {
      const reply = await run()
      this.#failing.delete(path)
      this.#succeeded.set(operation, clock.steady())
      return reply
    } catch (error) {
      if (!(error instanceof ServiceError) || !error.silent) throw error
      const { at, beside } = this.#failing.get(path) ?? { at: begun, beside: error.beside }
      const isSince = (time: number | undefined): boolean => time !== undefined && time > at
      error.beside = {
        same: isSince(this.#succeeded.get(operation)) ? beside.same + 1 : 0,
        any: [...this.#succeeded.values()].some(isSince) ? beside.any + 1 : 0,
      }
      this.#failing.set(path, { at: clock.steady(), beside: error.beside })
      throw error
    }
  }

  async #paced(call: Call, subject: string): Promise<HttpReply> {
    const { clock } = this.#options
    const since = clock.steady()
    const again = since - (this.#outpaced.get(subject) ?? -Infinity) < REMEMBERED
    const paced: PacedRead = { since, again, pace: new AbortController() }
    this.#paces.add(paced)
    this.#keepPace()
    const { signal } = paced.pace
    try {
      const reply = await this.#once({
        ...call,
        signal: call.signal === undefined ? signal : AbortSignal.any([call.signal, signal]),
      })
      const took = clock.steady() - since
      this.#slowUntil = took > PACE / 2 ? clock.steady() + 2 * PACE : -Infinity
      if (took < PACE) this.#outpaced.delete(subject)
      return reply
    } catch (error) {
      if (!signal.aborted || !(error instanceof ServiceError) || error.code !== 'no_reply') throw error
      this.#outpaced.set(subject, clock.steady())
      // With a single slot no read has its whole time: this was all that it gets.
      const code = again && this.#slots.size === 1 ? 'too_slow' : 'outpaced'
      const message = `no answer within ${Math.round((clock.steady() - since) / 1000)} s, and other requests wait`
      throw new ServiceError({ code, status: 0, message, uncertain: true })
    } finally {
      this.#paces.delete(paced)
    }
  }

  /**
   * While requests wait for a slot, ends the reads that are under way for too long, as many as wait. So that slow sessions can be
   * read, too, those whose last read was ended keep up to half of the slots. If the last answers were slow, the others are no
   * faster, and each has more time.
   */
  #keepPace(): void {
    const { clock } = this.#options
    const reads = [...this.#paces].filter(({ pace }) => !pace.signal.aborted)
    /** Requests that wait, and for which no read is being ended. */
    const waiting = this.#slots.waiting - (this.#paces.size - reads.length)
    if (this.#pacer !== null || waiting <= 0) return
    const usual = clock.steady() < this.#slowUntil ? SLOWER * PACE : PACE
    const half = Math.floor(this.#slots.size / 2)
    const kept = new Set(reads.filter(({ again }) => again).slice(0, half))
    const endOf = ({ since, again }: PacedRead): number =>
      since + (again && half === 0 ? SLOWER * PACE : usual)
    const [first] = reads.filter((read) => !kept.has(read)).toSorted((a, b) => endOf(a) - endOf(b))
    if (first === undefined) return
    const ms = endOf(first) - clock.steady()
    if (ms <= 0) {
      first.pace.abort()
      return this.#keepPace()
    }
    this.#pacer = clock.after(ms, () => {
      this.#pacer = null
      this.#keepPace()
    })
  }

  /** Like `send`, with another function that sends the request once, such as `open`. */
  async persist<T>(call: Call, once: () => Promise<T>): Promise<T> {
    const { clock, random, onRetry, log } = this.#options
    const deadline = clock.steady() + (call.patience ?? this.#options.patience)
    let silent = false
    /** The error of the last attempt that had its whole time. */
    let timedOut: ServiceError | null = null
    let failures = 0
    // If discovery finds the header only after the first attempt, that attempt was sent without the key.
    let keyed = call.posting !== undefined
    for (;;) {
      keyed &&= this.#options.found().idempotencyHeader !== null
      try {
        return await this.#attempt(call, deadline, once)
      } catch (error) {
        if (call.signal?.aborted === true) throw ended(call.signal)
        if (!(error instanceof ServiceError)) throw error
        if (error.code === 'no_reply') timedOut = error
        const isOutpaced = error.code === 'outpaced' && timedOut !== null
        const last = isOutpaced ? timedOut : silent ? error.afterSilence() : error
        if (!this.#mayRepeat(call, error, keyed)) throw last
        silent ||= !refusedBeforeActing(error)
        // A refusal by a closed bucket is not a failed attempt: the request waits in the queue of the bucket.
        const { code, unsent } = error
        const limited = unsent || code === 'rate_limit_exceeded' || code === 'directory_unavailable'
        if (!limited && ++failures >= ATTEMPTS_MAX) throw last
        const wait = limited ? 0 : backoff(PAUSE, failures, random, error.retryAfter ?? 0)
        const earliest = clock.steady() + Math.max(wait, error.retryAfter ?? 0)
        if (earliest > deadline) throw last
        if (this.#drain.signal.aborted) throw silent ? stopped().afterSilence() : stopped()
        log.debug({ operation: call.operation, code: error.code, failures, pause: wait }, 'trying again')
        onRetry?.(error.code)
        if (!refusedBeforeActing(error)) call.onRepeat?.()
        await this.#sleep(wait, call.signal).catch((cause: unknown) => {
          throw silent && cause instanceof ServiceError ? cause.afterSilence() : cause
        })
      }
    }
  }

  /**
   * Opens a GET whose body is read piece by piece. It is sent once.
   * @throws {ServiceError} unless the answer is a 2xx.
   */
  async open({ operation, path, headers, signal, bucket }: StreamCall): Promise<HttpStream> {
    const { baseUrl, http, clock, timeout } = this.#options
    const token = this.authorization.token()
    const given = new AbortController()
    const started = clock.steady()
    let stream: HttpStream
    try {
      stream = await http.open({
        url: baseUrl + path,
        headers: { ...headers, authorization: `Bearer ${token}`, 'user-agent': 'agent-session-sidecar' },
        timeout,
        signal: AbortSignal.any([signal, given.signal, this.stopped]),
      })
    } catch (error) {
      this.#note(operation, null, started)
      if (!(error instanceof NetworkFault)) throw error
      if (this.stopped.aborted) throw stopped()
      throw signal.aborted ? ended(signal) : unanswered(error)
    }
    this.#note(operation, stream, started)
    if (stream.status < 300) return stream
    // The body of the error must come within `timeout`, too.
    const timer = clock.after(timeout, () => given.abort())
    const body = await textOf(stream)
    timer.cancel()
    const { status, headers: answered } = stream
    throw this.#refusal(operation, { status, headers: answered, body }, token, bucket)
  }

  /**
   * The process ends soon: a request that waits for the rate budget or for its next attempt, or would have to, fails. Others
   * are sent.
   */
  drain(): void {
    this.#drain.abort(stopped())
    this.budget.drain(stopped())
  }

  /** Ends all running and waiting requests with an error. */
  stop(): void {
    this.#stop.abort(stopped())
    this.#pacer?.cancel()
    for (const { pace } of this.#paces) pace.abort()
    this.#drain.abort(stopped())
    this.budget.stop(stopped())
  }

  /** `keyed`: every attempt so far had the call's key. */
  #mayRepeat(call: Call, error: ServiceError, keyed: boolean): boolean {
    if (this.#stop.signal.aborted || !worthRepeating(error)) return false
    return call.method === 'GET' || call.repeatable === true || keyed || refusedBeforeActing(error)
  }

  async #attempt<T>(call: Call, deadline: number, once: () => Promise<T>): Promise<T> {
    const { authorization, budget } = this
    const { clock } = this.#options
    for (;;) {
      call.signal?.throwIfAborted()
      authorization.token()
      const bucket = this.#bucketOf(call.operation)
      await budget.enter(bucket, deadline - clock.steady(), call.signal)
      let taken = false
      try {
        const run = async () => {
          // The client may have been stopped before the request, or while it waited for a slot.
          if (this.#stop.signal.aborted) throw stopped()
          if (call.posting?.maySend?.() === false) throw superseded()
          return budget.wait(bucket) > 0 ? null : { reply: await once() }
        }
        const done = await this.#inTurn(run, call.signal)
        taken = done !== null
        // null: the bucket was closed while the request waited for a slot, so it waits for the bucket again.
        if (done !== null) return done.reply
      } catch (error) {
        taken = error instanceof ServiceError && error.status !== 0 && error.code !== 'rate_limit_exceeded'
        throw error
      } finally {
        budget.leave(bucket, taken)
      }
    }
  }

  async #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const drain = this.#drain.signal
    await sleep(this.#options.clock, ms, signal === undefined ? drain : AbortSignal.any([signal, drain]))
  }

  #bucketOf(operation: string): string {
    return this.budget.bucketOf(operation, usualBucket(operation))
  }

  async #inTurn<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#slots.wanted - this.#slots.size >= WAITING_MAX) {
      const message = `${WAITING_MAX} requests are already waiting for the service`
      throw new ServiceError({ code: 'overloaded', status: 0, message })
    }
    const turn = this.#slots.run(run, signal)
    this.#keepPace()
    return await turn
  }

  async #once(call: Call): Promise<HttpReply> {
    const { http, clock, baseUrl, timeout } = this.#options
    const {
      maxAnswer = ANSWER_MAX,
      body,
      text = body === undefined ? undefined : JSON.stringify(body),
    } = call
    const token = this.authorization.token()
    const started = clock.steady()
    try {
      const reply = await http.exchange({
        method: call.method,
        url: baseUrl + call.path,
        headers: this.#headers(call, token),
        ...(text === undefined ? {} : { body: text }),
        timeout,
        maxBody: maxAnswer,
        pool: this.#pool,
        signal: call.signal ?? this.#stop.signal,
      })
      this.#note(call.operation, reply, started)
      if (reply.status >= 300)
        throw this.#refusal(call.operation, reply, call.anonymous === true ? null : token)
      if (!reply.truncated) return reply
      const message = `the answer is longer than ${maxAnswer} bytes`
      throw new ServiceError({ code: 'answer_too_large', status: reply.status, message })
    } catch (error) {
      if (!(error instanceof NetworkFault)) throw error
      this.#note(call.operation, null, started)
      // The request was sent before the stop: the service may have processed it.
      throw this.#stop.signal.aborted ? stopped().afterSilence() : unanswered(error)
    }
  }

  #headers(call: Call, token: string): Record<string, string> {
    const headers: Record<string, string> = {
      accept: 'application/json',
      'user-agent': 'agent-session-sidecar',
    }
    if (call.anonymous !== true) headers['authorization'] = `Bearer ${token}`
    if (call.body !== undefined || call.text !== undefined) headers['content-type'] = 'application/json'
    const header = this.#options.found().idempotencyHeader
    const { posting } = call
    if (posting !== undefined && header !== null) headers[header.name] = headerSafe(posting.key)
    if (posting?.traceparent !== undefined) headers['traceparent'] = posting.traceparent
    return headers
  }

  /**
   * Learns the clock offset and the budget from an answer, and reports the request to the metrics. `reply` null: no
   * answer came. `started` is on the steady clock.
   */
  #note(operation: string, reply: Pick<HttpReply, 'status' | 'headers'> | null, started: number): void {
    const { clock, found, observe } = this.#options
    const statusClass = reply === null ? 'none' : `${Math.floor(reply.status / 100)}xx`
    observe?.({ operation, statusClass, seconds: (clock.steady() - started) / 1000 })
    if (reply === null) return
    this.offset.learn(reply.headers['date'], started, clock.steady())
    this.budget.learn(operation, usualBucket(operation), reply.headers, found().rateHeaders)
  }

  /**
   * The error of an answer outside 2xx. Depending on its code it also closes buckets, or rejects the token. `token`
   * null: none was sent.
   */
  #refusal(operation: string, reply: Refusal, token: string | null, bucket?: string): ServiceError {
    const { authorization, budget } = this
    const { clock, log } = this.#options
    const error = classify(reply, clock.now())
    const { code, status, requestId, retryAfter } = error
    // The description needs no token (rule HLT-10): a gateway that hides it says nothing about ours.
    const isAboutToken = code !== 'directory_unavailable' && operation !== 'discover'
    if (status === 401 && isAboutToken && token !== null) authorization.reject(token)
    if (code === 'rate_limit_exceeded') {
      const name = bucket ?? this.#bucketOf(operation)
      budget.close(name, retryAfter)
      this.#logWait({ operation, error, what: `requests that draw on ${name} wait` })
    } else if (concernsAll(error)) {
      budget.hold(error)
      this.#logWait({ operation, error, what: 'every request waits' })
    }
    log.debug({ operation, code, status, requestId, retryAfter }, 'the service refused a request')
    return error
  }
}

export function stopped(): ServiceError {
  return new ServiceError({ code: 'stopped', status: 0, message: 'the client of the service was stopped' })
}

function superseded(): ServiceError {
  const message = 'another process continues this work; the request was not sent'
  return new ServiceError({ code: 'superseded', status: 0, message })
}

/** The error of a call whose signal was aborted. Each call gets its own error object. */
export function ended(signal: AbortSignal): ServiceError {
  const reason: unknown = signal.reason
  if (reason instanceof ServiceError) {
    const { code, status, message, cause } = reason
    return new ServiceError({ code, status, message, cause })
  }
  return new ServiceError({ code: 'aborted', status: 0, message: 'aborted by the caller', cause: reason })
}

/** Waits `ms`. @throws {ServiceError} when `signal` ends first. */
export async function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await pause(clock, ms, signal)
  if (signal.aborted) throw ended(signal)
}

/** The start of a body; shorter if the connection broke. */
async function textOf(stream: HttpStream): Promise<string> {
  const body = new ByteBuffer(REFUSAL_MAX)
  try {
    for await (const chunk of stream.chunks) {
      body.append(chunk.subarray(0, REFUSAL_MAX - body.length))
      if (body.length === REFUSAL_MAX) break
    }
  } catch (error) {
    // The rest of the body is not needed: the status is enough.
    if (!(error instanceof NetworkFault)) throw error
  }
  return body.bytes().toString()
}
