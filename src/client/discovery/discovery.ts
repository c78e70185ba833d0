import type { Template } from '../../std/template.ts'
import {
  findAnswerRoute,
  findArtifactList,
  findMessageRoute,
  findSessionStream,
  findTurnRoute,
} from './find.ts'
import { idempotencyHeaderOf, rateHeadersOf } from './headers.ts'
import type { IdempotencyHeader, RateHeaders } from './headers.ts'
import { OpenApi } from './openapi.ts'
import { fixedRoute } from './route.ts'
import type { NoRoute, Route, RouteOverrides } from './route.ts'

/** The details that the interface leaves open, found in the service's own description (rules HLT-11 to HLT-15). */
export interface Finding<Name extends string> {
  /** False while the document could not be read, or described nothing. */
  documented: boolean
  /** The error of the last failed read of the document; null when it was read. */
  fault: string | null
  routes: Record<Name, Route | NoRoute>
  /** The body of a message; null when it cannot be sent. */
  messageBody: Template | null
  /** The body of an answer, to which `output` or `error` is added; null when an answer cannot be posted. */
  answerBody: Template | null
  idempotencyHeader: IdempotencyHeader | null
  rateHeaders: RateHeaders
}

/** Only the parts that the sidecar needs. */
export type Discovery = Finding<OperationName>

export type OperationName =
  | 'health'
  | 'listSessions'
  | 'readSession'
  | 'listTurns'
  | 'readTurn'
  | 'listItems'
  | 'listArtifacts'
  | 'answer'
  | 'sendMessage'
  | 'listWebhooks'
  | 'createWebhook'
  | 'deleteWebhook'
  | 'openStream'
  | 'sessionStream'

/**
 * Finds each operation in any document. Pure: the same document gives the same result. A missing,
 * broken or hostile document gives only the paths that the interface names.
 * @throws {OperatorError} on an override that cannot be used.
 */
export function discover(document: unknown, overrides: RouteOverrides = {}): Discovery {
  return discoverIn(new OpenApi(document), overrides)
}

export function discoverIn(api: OpenApi, overrides: RouteOverrides): Discovery {
  const answer = findAnswerRoute(api, overrides)
  const message = findMessageRoute(api, overrides)
  return {
    documented: api.operations.length > 0,
    fault: null,
    routes: {
      health: fixedRoute(api, 'GET', '/v1/health'),
      listSessions: fixedRoute(api, 'GET', '/v1/sessions'),
      readSession: fixedRoute(api, 'GET', '/v1/sessions/{session_id}'),
      listTurns: fixedRoute(api, 'GET', '/v1/sessions/{session_id}/turns'),
      readTurn: findTurnRoute(api, overrides),
      listItems: fixedRoute(api, 'GET', '/v1/sessions/{session_id}/items'),
      listArtifacts: findArtifactList(api),
      answer: answer.route,
      sendMessage: message.route,
      listWebhooks: fixedRoute(api, 'GET', '/v1/webhooks'),
      createWebhook: fixedRoute(api, 'POST', '/v1/webhooks'),
      deleteWebhook: fixedRoute(api, 'DELETE', '/v1/webhooks/{webhook_id}'),
      openStream: fixedRoute(api, 'GET', '/v1/events'),
      sessionStream: findSessionStream(api, overrides),
    },
    messageBody: message.body,
    answerBody: answer.body,
    idempotencyHeader: idempotencyHeaderOf(api, overrides),
    rateHeaders: rateHeadersOf(api),
  }
}
