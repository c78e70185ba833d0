import { STATUS_CODES } from 'node:http'
import type { Refusal } from './listener.ts'

/** The kinds of problems; the `type` of a problem is `PROBLEM_TYPE` and this word. */
export type ProblemCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'conflict'
  | 'too_large'
  | 'unsupported_media_type'
  | 'rate_limit_exceeded'
  | 'headers_too_large'
  | 'not_ready'
  | 'internal_error'

const STATUS: Record<ProblemCode, number> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limit_exceeded: 429,
  headers_too_large: 431,
  not_ready: 503,
  internal_error: 500,
}

export const PROBLEM_TYPE = 'urn:session-sidecar:problem:'

export const PROBLEM_CONTENT = 'application/problem+json'

export interface Fault {
  field: string
  detail: string
}

/** A refusal. Thrown anywhere below a route. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly errors: readonly Fault[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ProblemCode,
    detail: string,
    extra: { errors?: Fault[]; headers?: Record<string, string> } = {},
  ) {
    super(detail)
    this.name = 'Problem'
    this.code = code
    this.errors = extra.errors ?? []
    this.headers = extra.headers ?? {}
  }

  get status(): number {
    return STATUS[this.code]
  }

  /** RFC 9457 problem details, as they are sent. `url`: of the request; the answer omits its query. */
  document(url: string, requestId: string): object {
    const forService = { code: this.code, message: this.message, request_id: requestId }
    return {
      type: PROBLEM_TYPE + this.code,
      title: STATUS_CODES[this.status] ?? 'Error',
      status: this.status,
      detail: this.message,
      instance: pathOf(url),
      ...(url.startsWith('/v1/') ? { error: forService } : {}),
      ...(this.errors.length === 0 ? {} : { errors: [...this.errors] }),
    }
  }
}

/** For a connection without a readable request. */
export const connectionProblem: Refusal = (status) => {
  const problem =
    status === 408
      ? new Problem('request_timeout', 'the request was not complete in time')
      : status === 431
        ? new Problem('headers_too_large', 'the headers are too long')
        : new Problem('invalid_request', 'this is not HTTP')
  return { type: PROBLEM_CONTENT, text: JSON.stringify(problem.document('/', '')) }
}

export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}

export function queryOf(url: string): string {
  return url.slice(pathOf(url).length + 1)
}
