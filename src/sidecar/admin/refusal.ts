import type { IncomingMessage, ServerResponse } from 'node:http'
import { createThrottledLog } from '../../std/throttled-log.ts'
import { StoreError } from '../../core/store-error.ts'
import { codeOf } from '../../std/errors.ts'
import type { Log } from '../../std/ports.ts'
import { ActionRefused } from './actions.ts'
import { LOGIN } from './guard.ts'
import { BodyRefused, hasBody, STEADY } from './listener.ts'
import { pathOf, Problem, PROBLEM_CONTENT } from './problem.ts'

/** When a request failed, answers it with the problem details of the error. */
export type Refuse = (error: unknown, request: IncomingMessage, response: ServerResponse) => void

export function createRefuse(log: Log): Refuse {
  const logWrongToken = createThrottledLog(STEADY, (times) =>
    log.warn({ times }, 'admin: a request had a wrong admin token'),
  )
  let refusals = 0
  return (error, request, response) => {
    const problem = problemOf(error)
    const url = request.url ?? ''
    if (isWrongToken(problem, request)) logWrongToken()
    if (problem.status === 500 || isDamage(error))
      log.error({ err: error, path: pathOf(url) }, 'admin: a request failed')
    if (response.headersSent) return void response.destroy()
    // A refused request does not keep its connection.
    if (problem.status === 401 || problem.status === 429) response.setHeader('connection', 'close')
    dropBody(request, response)
    const id = `req-${(++refusals).toString(36)}`
    const text = JSON.stringify(problem.document(url, id))
    response
      .writeHead(problem.status, {
        ...SECURITY,
        ...problem.headers,
        'content-type': PROBLEM_CONTENT,
        'content-length': Buffer.byteLength(text),
      })
      .end(text)
  }
}

/** Browsers must not display, cache or frame these answers, or give them to another origin. */
export const SECURITY = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** After an answer that does not need the rest of the body, the rest is discarded, and the connection closes. */
export function dropBody(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request) || request.complete) return
  request.resume()
  response.setHeader('connection', 'close')
}

/** The store will not recover by itself. */
function isDamage(error: unknown): boolean {
  return error instanceof StoreError && (error.kind === 'damaged' || error.kind === 'lost')
}

/** A request without a token is not suspicious. */
function isWrongToken({ code }: Problem, { headers, url }: IncomingMessage): boolean {
  return code === 'unauthorized' && (headers.authorization !== undefined || pathOf(url ?? '') === LOGIN)
}

/** A refusal of ours, of the store or of fastify is shown to the client, and no other error. */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ActionRefused) return new Problem(error.code, error.message)
  // While the database was down, "status" of the runbook reported that the sidecar failed.
  if (error instanceof StoreError)
    return new Problem(isDamage(error) ? 'internal_error' : 'not_ready', error.message)
  if (!(error instanceof BodyRefused)) return FRAMEWORK[codeOf(error)] ?? INTERNAL
  if (error.statusCode === 503)
    return new Problem('not_ready', error.message, { headers: { 'retry-after': '1' } })
  return new Problem(error.statusCode === 413 ? 'too_large' : 'invalid_request', error.message)
}

/** The refusals of fastify in our own words: its texts name its settings, and may repeat the URL. */
const FRAMEWORK: Readonly<Record<string, Problem>> = {
  FST_ERR_BAD_URL: new Problem('invalid_request', 'the path cannot be decoded'),
  FST_ERR_MAX_PARAM_LENGTH: new Problem('invalid_request', 'a part of the path has more than 512 characters'),
  FST_ERR_CTP_INVALID_JSON_BODY: new Problem('invalid_request', 'the body is not valid JSON'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: new Problem('unsupported_media_type', 'a body must be application/json'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: new Problem(
    'invalid_request',
    'the body has another length than announced',
  ),
}

const INTERNAL = new Problem('internal_error', 'the sidecar failed; see its log')
