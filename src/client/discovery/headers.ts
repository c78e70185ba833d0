import { OperatorError } from '../../std/errors.ts'
import type { OpenApi, ResponseHeader } from './openapi.ts'
import type { How, RouteOverrides } from './route.ts'

/** Names in lower case; null if the document names none. */
export interface RateHeaders {
  limit: string | null
  remaining: string | null
  reset: string | null
  bucket: string | null
}

export interface IdempotencyHeader {
  name: string
  how: How
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/

/**
 * Headers with a standard meaning: a document that declares one of these as its idempotency header is wrong or hostile.
 */
const TAKEN =
  /^(authorization|proxy-.*|cookie|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept.*|last-event-id|user-agent|date|origin|via)$/i

/**
 * The header parameter of POSTs whose name, or else whose description, mentions idempotency. Of several, the one that
 * most operations have.
 * @throws {OperatorError} when the configured name is not a header name.
 */
export function idempotencyHeaderOf(api: OpenApi, overrides: RouteOverrides): IdempotencyHeader | null {
  const configured = overrides.idempotency_header
  if (configured !== undefined) {
    if (!TOKEN.test(configured) || TAKEN.test(configured)) {
      throw new OperatorError(
        `service.routes.idempotency_header: "${configured}" cannot be used as a header name`,
        2,
      )
    }
    return { name: configured.toLowerCase(), how: 'override' }
  }
  const parameters = api.operations
    .filter(({ method }) => method === 'POST')
    .flatMap((operation) => operation.parameters)
    .filter(
      (parameter) => parameter.in === 'header' && TOKEN.test(parameter.name) && !TAKEN.test(parameter.name),
    )
  const byName = parameters.filter(({ name }) => /idempoten/i.test(name))
  const byDescription = parameters.filter(({ description }) => /idempoten/i.test(description))
  const name = mostCommon((byName.length > 0 ? byName : byDescription).map((parameter) => parameter.name))
  return name === null ? null : { name, how: 'document' }
}

const KINDS: readonly (readonly [keyof RateHeaders, RegExp])[] = [
  ['remaining', /remaining|left/i],
  ['reset', /reset|refill/i],
  ['limit', /limit|allowance|capacity|size|whole|total|full/i],
  ['bucket', /bucket|name|scope|policy/i],
]

/** The response headers of the rate budget: by their names, else by their descriptions. */
export function rateHeadersOf(api: OpenApi): RateHeaders {
  const seen = api.operations.flatMap((operation) =>
    operation.responses.flatMap((response) => response.headers),
  )
  const found: Record<keyof RateHeaders, string[]> = { limit: [], remaining: [], reset: [], bucket: [] }
  for (const header of seen) {
    const kind = kindOf(header)
    if (kind !== null) found[kind].push(header.name)
  }
  return {
    limit: mostCommon(found.limit),
    remaining: mostCommon(found.remaining),
    reset: mostCommon(found.reset),
    bucket: mostCommon(found.bucket),
  }
}

function kindOf({ name, description, numeric }: ResponseHeader): keyof RateHeaders | null {
  const about = /rate|limit|budget|quota|bucket/i
  if (!TOKEN.test(name) || /^retry-after$/i.test(name) || !about.test(`${name} ${description}`)) return null
  // "X-RateLimit-Remaining" contains "limit" too, and is the remaining number.
  const said = [name, description].map((words) => words.replace(/rate[- ]?limit/gi, ''))
  for (const words of said) {
    const kind = KINDS.find(([kind, pattern]) => pattern.test(words) && !(kind === 'bucket' && numeric))
    if (kind !== undefined) return kind[0]
  }
  return null
}

function mostCommon(names: string[]): string | null {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1)
  const [first] = [...counts].sort((one, other) => other[1] - one[1])
  return first?.[0] ?? null
}
