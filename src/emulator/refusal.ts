/** Codes whose status the interface states; a profile gives the others theirs. */
const STATUS = {
  invalid_request: 400,
  permission_denied: 403,
  not_found: 404,
  conflict: 409,
  project_limit_exceeded: 429,
  rate_limit_exceeded: 429,
  directory_unavailable: 503,
  internal_error: 500,
} as const

/** Every code but that of the 401, which a profile names. */
export const CODES: readonly string[] = [...Object.keys(STATUS), 'queue_full', 'bridge_incompatible']

/** An answer that is an error: `{error: {code, message, request_id}}` (rule ERR-01). */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** A refusal with a code whose status the interface states. */
export function refuse(
  code: keyof typeof STATUS,
  message: string,
  headers?: Record<string, string>,
): Refusal {
  return new Refusal(STATUS[code], code, message, headers)
}

export function invalid(message: string): Refusal {
  return refuse('invalid_request', message)
}

/** `what` is the kind ("session"), `id` the requested id. */
export function notFound(what: string, id: string): Refusal {
  return refuse('not_found', `no ${what} ${JSON.stringify(id)}`)
}
