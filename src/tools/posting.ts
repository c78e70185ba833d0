import type { ServiceError } from '../core/errors.ts'
import { TOOL_ERROR, type ToolSpec } from '../core/tool.ts'

/** What answers and fresh turns have in common: both are POSTs that the service must take once. */

export const RETRY = { base: 250, max: 60_000 }

/** What a result's tool has to say of its posting. */
export type AnswerPolicy = Pick<ToolSpec, 'error' | 'onNotDelivered'>

/** A tool that is not configured any more: what it did is posted all the same. */
export const REMOVED: AnswerPolicy = { error: TOOL_ERROR, onNotDelivered: 'resend' }

/** Whether the service may have taken what was sent: there was no reply, or one that does not rule it out. */
export function mayHaveActed({ code, status, uncertain }: ServiceError): boolean {
  const refused = status >= 400 && status < 500 && code !== 'http_408'
  return uncertain || !(refused || NOT_ACTED_ON.has(code))
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
