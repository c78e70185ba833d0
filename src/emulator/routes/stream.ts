import { Type } from 'typebox'
import { operation, shape, type Call, type Operation } from '../operation.ts'
import type { OpenDetails } from '../profile/details.ts'
import { findSession } from './find.ts'
import type { ServerResponse } from 'node:http'

const query = Type.Object(
  {
    last_event_id: Type.Optional(Type.String({ description: 'Resume after this `seq`; 0 for everything.' })),
  },
  { additionalProperties: false },
)

/** Both event streams. */
export function streamOperations(details: OpenDetails): Operation[] {
  const common = {
    method: 'GET' as const,
    access: 'sessions:read' as const,
    cost: 'read' as const,
    query,
    resumes: true,
    success: {
      status: 200,
      description: 'Frames until the client leaves.',
      type: 'text/event-stream',
      schema: shape('StreamFrame'),
    },
    handle: () => ({ status: 200 }),
  }
  return [
    operation({
      ...common,
      id: 'streamEvents',
      path: '/v1/events',
      summary: 'Events of every session of the organization',
      stream: (call, response, headers) => open(call, null, response, headers),
    }),
    operation({
      ...common,
      id: 'streamSessionEvents',
      path: details.paths.sessionStream,
      summary: 'Events of one session',
      refusals: [404],
      stream: (call, response, headers) => {
        const session = findSession(call.world, call.params['session_id'])
        open(call, session.id, response, headers)
      },
    }),
  ]
}

/** A client that reconnects keeps the address of its first request, so the header has the newer position. */
function open(
  { world, token, query: { last_event_id }, lastEventId }: Call<{ last_event_id?: string }, unknown>,
  sessionId: string | null,
  response: ServerResponse,
  headers: Record<string, string>,
): void {
  world.streams.open({
    tokenId: token.id,
    sessionId,
    cursor: lastEventId ?? last_event_id,
    response,
    headers,
  })
}
