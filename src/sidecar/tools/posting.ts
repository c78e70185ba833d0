import type { ServiceError } from '../../core/errors.ts'

/** What answers and fresh turns have in common: both are POSTs that the service must take once. */

export const RETRY = { base: 250, max: 60_000 }

/** Whether the service may have taken what was sent: there was no reply, or one that does not rule it out. */
export function mayHaveActed({ code, status, uncertain, unsent }: ServiceError): boolean {
  const refused = status >= 400 && status < 500 && code !== 'http_408'
  return uncertain || !(unsent || refused || NOT_ACTED_ON.has(code))
}

/** The service had no look at the request. */
const NOT_ACTED_ON = new Set([
  'rate_limit_exceeded',
  'directory_unavailable',
  'unreachable',
  'overloaded',
  'stopped',
  'route_unknown',
])
