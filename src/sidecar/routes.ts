import type { RouteOverrides as Configured } from './config/config.ts'
import type { RouteOverrides } from '../client/discovery/route.ts'

/**
 * Translates `service.routes` of the configuration into the client's names. Routes that are not set are left to
 * discovery.
 */
export function routeOverrides(routes: Configured): RouteOverrides {
  const overrides: RouteOverrides = {}
  if (routes.answerPath !== null) overrides.answer_path = routes.answerPath
  if (routes.messagePath !== null) overrides.message_path = routes.messagePath
  if (routes.messageBody !== null) overrides.message_body = routes.messageBody
  if (routes.turnPath !== null) overrides.turn_path = routes.turnPath
  if (routes.sessionStreamPath !== null) overrides.session_stream_path = routes.sessionStreamPath
  if (routes.idempotencyHeader !== null) overrides.idempotency_header = routes.idempotencyHeader
  return overrides
}
