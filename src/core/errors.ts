/**
 * Temporary errors. The last three codes stand for an answer without an error code: a proxy in front of the service
 * sent it, because the service names its errors.
 */
const PASSING: ReadonlySet<string> = new Set(['rate_limit_exceeded', 'http_408', 'http_425', 'http_429'])

/** The statuses with which a proxy answers for a service that is unreachable or too slow. */
const GATEWAY: ReadonlySet<number> = new Set([502, 503, 504])

/** After so many failures in a row, what cannot be read must not delay the rest. */
export const PATIENCE = 3
/** The same while only requests of other kinds succeed: it may be an outage of a part of the service, which ends. */
const LONG_PATIENCE = 12

export interface Beside {
  same: number
  any: number
}

/** The service refused or failed a request (rule ERR-01). `status` 0 means that no answer came: see `fault`. */
export class ServiceError extends Error {
  readonly code: string
  readonly status: number
  /** For a report to the operators of the service. */
  readonly requestId: string | null
  /** Milliseconds, from `Retry-After`. */
  readonly retryAfter: number | null
  /** Our name of the operation; null if the request was never made. */
  operation: string | null
  /**
   * The service may have processed the request: an earlier attempt had no reply, or we were stopped while it was under
   * way.
   */
  readonly uncertain: boolean
  /** The request was not sent: an earlier refusal closed our own rate budget. `code` and `status` are of that refusal. */
  readonly unsent: boolean
  /**
   * Of an error without an answer: how many such errors of the same request came in a row while others succeeded. `same`: requests
   * of the same operation succeeded between each two; `any`: requests of any operation.
   */
  beside: Beside = { same: 0, any: 0 }

  constructor(details: {
    code: string
    status: number
    message: string
    requestId?: string | null
    retryAfter?: number | null
    operation?: string | null
    uncertain?: boolean
    unsent?: boolean
    cause?: unknown
  }) {
    super(details.message, { cause: details.cause })
    this.name = 'ServiceError'
    this.code = details.code
    this.status = details.status
    this.requestId = details.requestId ?? null
    this.retryAfter = details.retryAfter ?? null
    this.operation = details.operation ?? null
    this.uncertain = details.uncertain ?? false
    this.unsent = details.unsent ?? false
  }

  /** The same error, marked as uncertain because an earlier attempt had no reply. */
  afterSilence(): ServiceError {
    const { code, status, message, requestId, retryAfter, operation, unsent, cause } = this
    return new ServiceError({
      code,
      status,
      message,
      requestId,
      retryAfter,
      operation,
      unsent,
      cause,
      uncertain: true,
    })
  }

  /** The token was rejected. No request succeeds until the token changes. */
  get unauthorized(): boolean {
    return this.status === 401
  }

  /**
   * While the service is moved, a proxy answers 404 for every resource: only a 404 with the service's own code
   * counts.
   */
  get notFound(): boolean {
    return this.status === 404 && this.code !== 'http_404'
  }

  /** The service did not answer although the request was sent; a proxy may have answered for it. */
  get silent(): boolean {
    return this.code === 'no_reply' || this.code === 'too_slow' || GATEWAY.has(this.status)
  }

  /** No answer, or a temporary one. */
  get transient(): boolean {
    return this.status === 0 || this.status >= 500 || PASSING.has(this.code)
  }
}

/**
 * Whether an error concerns only what was requested, and not the whole service, the network, or our token. A read of session A may
 * time out for ever while those of B succeed: then A's state is the cause. `failures`: how often the request failed in a row; errors
 * without an answer count only while others succeed.
 */
export function isParticular(error: unknown, failures: number): error is ServiceError {
  if (!(error instanceof ServiceError) || error.unauthorized || error.retryAfter !== null) return false
  if (error.code === 'rate_limit_exceeded') return false
  if (error.silent) return error.beside.same >= PATIENCE || error.beside.any >= LONG_PATIENCE
  return error.status > 0 && failures >= PATIENCE
}

/** An in-process handler throws this for an event that it can never handle: the event is dead-lettered. */
export class DeadLetter extends Error {
  constructor(message = 'the handler gave this event up') {
    super(message)
    this.name = 'DeadLetter'
  }
}

/** Also accepts an error of another copy of this package, for example of a plugin. */
export function isDeadLetter(error: unknown): error is Error {
  if (error instanceof DeadLetter) return true
  try {
    return error instanceof Error && error.name === 'DeadLetter'
  } catch {
    return false
  }
}
