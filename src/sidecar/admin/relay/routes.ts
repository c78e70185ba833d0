import { Type, type Static } from 'typebox'
import { asked, oneOf } from '../component.ts'
import { Problem } from '../problem.ts'
import type { FastifyReply } from 'fastify'
import { route, type Asked, type Route } from '../route.ts'
import type { Relay } from './relay.ts'

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
  if (relay === null) {
    throw new Problem('not_found', 'there is no stream to relay: stream.enabled is false')
  }
  const cursor = cursorOf([headers['last-event-id']].flat()[0], query.last_event_id)
  relay.checkRoom()
  const { raw } = reply.hijack()
  // A client that left meanwhile would keep a place for a reader.
  if (raw.destroyed) return
  // The connection ends the body: chunks would need a separate encoding for every reader.
  raw.removeHeader('transfer-encoding')
  raw.writeHead(200, { 'content-type': 'text/event-stream' })
  relay.open({ sessionId, cursor, transient: query.transient === '1' }, raw)
}

/** The header names the newer place: a client that reconnects keeps the address that it first asked for. */
function cursorOf(header: string | undefined, query: string | undefined): string | null {
  if (header !== undefined && header !== '' && !/^\d{1,40}$/.test(header)) {
    throw new Problem(
      'invalid_request',
      'Last-Event-ID: the seq of a frame is expected, or 0 for everything',
      {
        errors: [{ field: 'Last-Event-ID', detail: 'must be digits' }],
      },
    )
  }
  const given = header === undefined || header === '' ? query : header
  return given === undefined ? null : given.replace(/^0+(?=\d)/, '')
}
