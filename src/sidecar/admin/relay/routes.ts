import { Type, type Static } from 'typebox'
import type { FastifyReply } from 'fastify'
import { asked, oneOf } from '../component.ts'
import { route, type Asked, type Route } from '../route.ts'
import type { Relay } from './relay.ts'
import { subscribe } from './subscribe.ts'

const SUBSCRIPTION = asked({
  last_event_id: Type.Optional(
    Type.String({
      pattern: '^\\d{1,40}$',
      description: 'Resume after this seq; 0 for everything. Without it live frames only.',
    }),
  ),
  transient: oneOf(['0', '1'], { default: '1', description: '0 leaves out transient frames.' }),
})

/** The relay under the service's own paths. `relay` null: the stream is off, and there is nothing to relay. */
export function relayRoutes(relay: Relay | null): Route[] {
  const success = {
    status: 200,
    description: 'Frames, exactly as the service sent them, until the reader or the sidecar ends the stream.',
    content: 'text/event-stream',
  } as const
  const problems = [404, 429]
  return [
    route(
      {
        method: 'GET',
        path: '/v1/events',
        summary: "The service's event stream.",
        query: SUBSCRIPTION,
        success,
        problems,
      },
      (request, reply) => stream(relay, null, request, reply),
    ),
    route(
      {
        method: 'GET',
        path: '/v1/sessions/{session_id}/events',
        summary: "One session's part of the service's event stream.",
        query: SUBSCRIPTION,
        success,
        problems,
      },
      (request, reply) => stream(relay, request.params['session_id'] ?? '', request, reply),
    ),
  ]
}

function stream(
  relay: Relay | null,
  sessionId: string | null,
  { query, headers }: Asked<Static<typeof SUBSCRIPTION>, unknown>,
  reply: FastifyReply,
): void {
  const cursor = query.last_event_id ?? null
  const begin = subscribe(relay, { sessionId, cursor, transient: query.transient === '1' }, headers)
  begin(reply.hijack().raw)
}
