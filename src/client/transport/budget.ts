import { ServiceError } from '../../core/errors.ts'
import type { Clock, Log, Random, Timer } from '../../std/ports.ts'
import { RETRY_AFTER_MAX } from '../../std/retry-after.ts'
import { createThrottledLog } from '../../std/throttled-log.ts'
import type { RateHeaders } from '../discovery/headers.ts'

/**
 * A read is refused with 429: the bucket of reads is closed until `Retry-After`, and requests for it wait in order of
 * arrival. When it opens again, one request is sent, and each request that the service accepts lets two follow, until
 * none waits (TCP's slow start).
 *
 * This is the rate budget (rules LIM-34 to LIM-45): independent buckets, of which the service names two, creation and
 * reads. Only a refusal closes a bucket, because nothing else proves that it is used up. The directory that checks
 * tokens serves all buckets: while it is unavailable, every bucket is closed.
 */

/** Requests that may wait for one bucket. A sweep over a large organization requests one page at a time. */
const WAITING_MAX = 1000
/** A refusal without `Retry-After` closes the bucket for this long, milliseconds. */
const DEFAULT_WAIT = 1000
/** The shortest wait, milliseconds: without it, `Retry-After: 0` would cause an endless loop of requests. */
const WAIT_MIN = 100
/**
 * A random part that is added to each wait, up to this share of it or this long. Replicas that were refused together
 * then return one by one.
 */
const SPREAD = { share: 0.1, max: 60_000 }
/** Bucket names that the service may invent before we stop remembering new ones. */
const BUCKETS_MAX = 16

interface Waiter {
  go(): void
  fail(error: ServiceError): void
  timer: Timer
}

interface Bucket {
  name: string
  /** On the steady clock; 0 when open. */
  closedUntil: number
  /** The end of the wait that the service asked for, without the random part. */
  refusedUntil: number
  reopening: Timer | null
  /** Number of requests that may be under way while it opens again; Infinity when it is open. */
  window: number
  underWay: number
  waiting: Set<Waiter>
  remaining: number | null
}

/** The service asked to wait. This concerns all processes with our token. */
export interface RefusedFor {
  /** null: every bucket. */
  bucket: string | null
  /** Milliseconds. */
  wait: number
  code: string
  status: number
}

interface Hold {
  until: number
  code: string
  status: number
}

export interface BudgetOptions {
  clock: Clock
  random: Random
  onRemaining?: ((bucket: string, remaining: number) => void) | undefined
  onRefused?: (refused: RefusedFor) => void
}

export class Budget {
  readonly #options: BudgetOptions
  readonly #buckets = new Map<string, Bucket>()
  /** The bucket of each operation, as the service reported. */
  readonly #learned = new Map<string, string>()
  /** Until when every bucket is closed, on the steady clock, and the refusal that closed them. */
  #held: Hold = { until: 0, code: '', status: 0 }
  /** The error of a request that would have to wait; null: it waits. */
  #refuses: ServiceError | null = null
  #isStopped = false

  constructor(options: BudgetOptions) {
    this.#options = options
  }

  /** The bucket that the last answer to the operation named, or `fallback`. */
  bucketOf(operation: string, fallback: string): string {
    return this.#learned.get(operation) ?? fallback
  }

  /**
   * Takes a slot of the bucket, and waits while it is closed. Every `enter` that resolves is followed by one `leave`.
   * @param patience milliseconds
   * @throws {ServiceError} `refusal(name)` at once when the wait would be longer, or when too many wait.
   * @throws the signal's reason, once it is aborted.
   */
  async enter(name: string, patience: number, signal?: AbortSignal): Promise<void> {
    const bucket = this.#bucket(name)
    const wait = this.wait(name)
    if (wait === 0 && bucket.underWay < bucket.window) {
      bucket.underWay++
      return
    }
    if (this.#refuses !== null) throw this.#refuses
    if (wait > patience || bucket.waiting.size >= WAITING_MAX) throw this.refusal(name)
    let onAbort: (() => void) | null = null
    await new Promise<void>((resolve, reject) => {
      const timer = this.#options.clock.after(patience, () => {
        bucket.waiting.delete(waiter)
        reject(this.refusal(name))
      })
      const waiter: Waiter = { go: resolve, fail: reject, timer }
      bucket.waiting.add(waiter)
      onAbort = () => {
        timer.cancel()
        bucket.waiting.delete(waiter)
        reject(signal?.reason as Error)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
    }).finally(() => {
      if (onAbort !== null) signal?.removeEventListener('abort', onAbort)
    })
  }

  /** Milliseconds until the bucket opens again; 0 when it is open. */
  wait(name: string): number {
    const bucket = this.#bucket(name)
    return bucket.closedUntil === 0 ? 0 : Math.max(0, bucket.closedUntil - this.#options.clock.steady())
  }

  /** Releases the slot. `taken`: the service answered the request, and did not refuse it for its rate. */
  leave(name: string, taken: boolean): void {
    const bucket = this.#bucket(name)
    bucket.underWay--
    if (taken && bucket.closedUntil === 0) {
      bucket.window = bucket.waiting.size === 0 ? Infinity : bucket.window + 1
    }
    this.#admit(bucket)
  }

  /** Closes one bucket after `rate_limit_exceeded`. `retryAfter` in milliseconds. */
  close(name: string, retryAfter: number | null): void {
    const wait = waitOf(retryAfter)
    this.#close(this.#bucket(name), wait)
    this.#options.onRefused?.({ bucket: name, wait, code: 'rate_limit_exceeded', status: 429 })
  }

  /** Another process with our token was refused, or this one before its restart. */
  heed({ bucket, wait, code, status }: RefusedFor): void {
    if (bucket === null) this.#hold({ wait, code, status })
    else if (this.#buckets.has(bucket) || this.#buckets.size < BUCKETS_MAX)
      this.#close(this.#bucket(bucket), wait)
  }

  /** Closes every bucket, also those that are not known yet, after a refusal that concerns every request. */
  hold({ code, status, retryAfter }: ServiceError): void {
    const wait = waitOf(retryAfter)
    this.#hold({ wait, code, status })
    this.#options.onRefused?.({ bucket: null, wait, code, status })
  }

  #hold({ wait, code, status }: Omit<RefusedFor, 'bucket'>): void {
    const until = this.#options.clock.steady() + wait
    if (this.#isStopped || until <= this.#held.until) return
    this.#held = { until, code, status }
    for (const bucket of this.#buckets.values()) this.#close(bucket, wait)
  }

  /** Milliseconds for which every bucket stays closed; 0 if they are not. */
  get heldFor(): number {
    return Math.max(0, this.#held.until - this.#options.clock.steady())
  }

  /**
   * The error of a request that cannot wait and is not sent. While every bucket is closed, it has the code of the
   * refusal that closed them.
   */
  refusal(name: string): ServiceError {
    const retryAfter = Math.ceil(this.wait(name))
    if (this.heldFor > 0) {
      const { code, status } = this.#held
      const message = `the service answered ${status} (${code}): no request is sent while it asks to wait`
      return new ServiceError({ code, status, message, retryAfter, unsent: true })
    }
    const message = `the rate budget of ${name} is used up`
    return new ServiceError({ code: 'rate_limit_exceeded', status: 429, message, retryAfter, unsent: true })
  }

  /** Reads the budget headers of an answer, if discovery found their names. */
  learn(operation: string, fallback: string, headers: Record<string, string>, names: RateHeaders): void {
    const named = names.bucket === null ? undefined : headers[names.bucket]
    if (named !== undefined && /^[\w.:/-]{1,64}$/.test(named)) this.#remember(operation, named)
    const remaining =
      names.remaining === null ? Number.NaN : Number.parseInt(headers[names.remaining] ?? '', 10)
    if (Number.isNaN(remaining) || remaining < 0) return
    const bucket = this.#bucket(this.bucketOf(operation, fallback))
    bucket.remaining = remaining
    this.#options.onRemaining?.(bucket.name, remaining)
  }

  /** The requests left in each bucket that the service reported. */
  remaining(): Record<string, number> {
    const known = Array.from(this.#buckets.values(), ({ name, remaining }) => [name, remaining] as const)
    return Object.fromEntries(known.filter((entry): entry is [string, number] => entry[1] !== null))
  }

  /** Fails every request that waits or would have to wait. A request that need not wait is still sent. */
  drain(error: ServiceError): void {
    this.#refuses = error
    for (const { waiting } of this.#buckets.values()) {
      for (const waiter of waiting) {
        waiter.timer.cancel()
        waiter.fail(error)
      }
      waiting.clear()
    }
  }

  /** Fails every request that waits, and ends its own timers. */
  stop(error: ServiceError): void {
    this.drain(error)
    this.#isStopped = true
    this.#held = { until: 0, code: '', status: 0 }
    for (const bucket of this.#buckets.values()) {
      bucket.reopening?.cancel()
      bucket.reopening = null
      bucket.closedUntil = 0
    }
  }

  /** A refusal may be known only after this client was stopped: a 429 whose body was still coming. Then no timer is made. */
  #close(bucket: Bucket, wait: number): void {
    if (this.#isStopped) return
    const { clock, random } = this.#options
    const until = clock.steady() + wait
    bucket.window = 1
    // Several requests under way are refused together: the longest wait counts.
    if (until <= bucket.refusedUntil) return
    const added = Math.min(SPREAD.share * wait, SPREAD.max) * random.next()
    bucket.refusedUntil = until
    bucket.closedUntil = until + added
    bucket.reopening?.cancel()
    bucket.reopening = clock.after(wait + added, () => {
      bucket.closedUntil = 0
      bucket.reopening = null
      this.#admit(bucket)
    })
  }

  #admit(bucket: Bucket): void {
    if (bucket.closedUntil !== 0) return
    for (const waiter of bucket.waiting) {
      if (bucket.underWay >= bucket.window) return
      bucket.waiting.delete(waiter)
      waiter.timer.cancel()
      bucket.underWay++
      waiter.go()
    }
  }

  #remember(operation: string, name: string): void {
    if (this.#buckets.has(name) || this.#buckets.size < BUCKETS_MAX) this.#learned.set(operation, name)
  }

  #bucket(name: string): Bucket {
    let bucket = this.#buckets.get(name)
    if (bucket === undefined) {
      bucket = {
        name,
        closedUntil: 0,
        refusedUntil: 0,
        reopening: null,
        window: Infinity,
        underWay: 0,
        waiting: new Set(),
        remaining: null,
      }
      this.#buckets.set(name, bucket)
      if (this.heldFor > 0) this.#close(bucket, this.heldFor)
    }
    return bucket
  }
}

function waitOf(retryAfter: number | null): number {
  return Math.max(retryAfter ?? DEFAULT_WAIT, WAIT_MIN)
}

/** Most requests wait up to this long, milliseconds; a longer wait makes them fail. */
const LONG = 60_000

interface Refused {
  operation: string
  error: ServiceError
  /** The part of the log line that names the requests that wait. */
  what: string
}

/** Logs until when requests wait because of a refusal; throttled, because each request may be refused. */
export function createWaitLog(clock: Clock, log: Log): (refused: Refused) => void {
  const throttled = (level: 'info' | 'warn') =>
    createThrottledLog<Refused>(clock, (times, { operation, what, error }) => {
      const { code, status, requestId, retryAfter } = error
      const wait = retryAfter ?? 0
      const until = new Date(clock.now() + wait).toISOString()
      const cut = wait >= RETRY_AFTER_MAX ? ' (it asked for a day or more; a day is the maximum)' : ''
      log[level](
        { operation, code, status, requestId, until, times },
        `service: ${code}: ${what} until ${until}${cut}`,
      )
    })
  const short = throttled('info')
  const long = throttled('warn')
  return (refused) => ((refused.error.retryAfter ?? 0) < LONG ? short(refused) : long(refused))
}
