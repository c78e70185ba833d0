import { ServiceError } from '../../core/errors.ts'
import type { NetworkFault } from '../../std/errors.ts'
import { isObject, stringOf } from '../../std/json.ts'
import type { HttpReply } from '../../std/ports.ts'
import { retryAfter } from '../../std/retry-after.ts'
import { readJson } from '../../std/depth.ts'

/** The parts of an answer that its error is made from. */
export type Refusal = Pick<HttpReply, 'status' | 'headers' | 'body'>

/** Characters kept of the service's message, for the log. */
const MESSAGE_MAX = 500

/**
 * The error that an answer reports (rule ERR-01): `error.code` decides where there is one, otherwise the
 * status does, as `http_502`. `now` is our wall clock, milliseconds, for a `Retry-After` given as a date.
 */
export function classify(reply: Refusal, now: number): ServiceError {
  const { status, headers } = reply
  const error = errorIn(reply.body)
  // A 401 is terminal whatever its code (rule AUT-28). An unreachable directory gives 503, not 401 (rule ERR-37).
  const code = error.code ?? (status === 401 ? 'unauthorized' : `http_${status}`)
  return new ServiceError({
    code,
    status,
    message: error.message ?? `the service answered ${status}`,
    requestId: error.requestId ?? stringOf(headers['x-request-id']) ?? stringOf(headers['request-id']),
    retryAfter: retryAfterOf(headers, now),
  })
}

interface ErrorBody {
  code: string | null
  message: string | null
  requestId: string | null
}

function errorIn(body: string): ErrorBody {
  const error = objectAt(body)
  const cut = (value: string | null): string | null => value?.slice(0, MESSAGE_MAX) ?? null
  return {
    code: cut(stringOf(error?.['code'])),
    message: cut(stringOf(error?.['message'])),
    requestId: cut(stringOf(error?.['request_id'])),
  }
}

function objectAt(body: string): Record<string, unknown> | null {
  if (!body.trimStart().startsWith('{')) return null
  try {
    const value = readJson(body)
    return isObject(value) && isObject(value['error']) ? value['error'] : null
  } catch {
    return null
  }
}

/** A date is compared with the `Date` header of the response, or with `now` if it has none. */
export function retryAfterOf(headers: Record<string, string>, now: number): number | null {
  const sent = Date.parse(headers['date'] ?? '')
  return retryAfter(headers['retry-after'], Number.isNaN(sent) ? now : sent)
}

/** No answer came. `unreachable`: the request was not sent; `no_reply`: it may have had its effect. */
export function unanswered(fault: NetworkFault): ServiceError {
  const code = fault.kind === 'unreachable' ? 'unreachable' : 'no_reply'
  return new ServiceError({ code, status: 0, message: fault.message, cause: fault })
}

/** True when the request had no effect (it did not arrive, or was refused), so that it may be sent again. */
export function refusedBeforeActing(error: ServiceError): boolean {
  return (
    error.unsent ||
    error.code === 'rate_limit_exceeded' ||
    error.code === 'directory_unavailable' ||
    error.code === 'unreachable'
  )
}

/** True when the same request may succeed later, whether or not this one had its effect. */
export function worthRepeating(error: ServiceError): boolean {
  if (error.code === 'project_limit_exceeded') return false
  return refusedBeforeActing(error) || error.code === 'no_reply' || (error.status > 0 && error.transient)
}

/**
 * Whether the refusal concerns every request, and not only this one or its rate bucket. All requests need the directory. A
 * 503 with `Retry-After` concerns the whole service (RFC 9110, section 15.6.4). A 429 without a code of the service comes
 * from a proxy, which does not know the buckets.
 */
export function concernsAll({ code, status, retryAfter }: ServiceError): boolean {
  return code === 'directory_unavailable' || (retryAfter !== null && (status === 503 || code === 'http_429'))
}
