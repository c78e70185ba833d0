import { Type, type Static } from 'typebox'
import { STORE_REFUSALS } from '../../../core/observer.ts'
import { component, nullable, oneOf, time } from '../component.ts'
import { ok, route, type Route } from '../route.ts'

const Channel = Type.Object({
  state: oneOf(['disabled', 'connecting', 'live', 'waiting', 'stopped']),
  since: time('When this state began.'),
  last_error: nullable(Type.String()),
  last_event_at: nullable(time()),
  lag_seconds: nullable(Type.Number(), 'How late the channel reported the last fact that it reported.'),
  last_seq: nullable(Type.String(), 'Stream: the last seq stored.'),
})

const ServiceRoute = Type.Object({
  operation: Type.String(),
  method: nullable(Type.String()),
  path: nullable(Type.String(), 'A template, as in the document; null when it was not found.'),
  how: oneOf(['document', 'override', 'default', 'missing']),
  reason: nullable(Type.String(), 'Why it was not found, and how to fix it.'),
})

const DiscoveryResult = Type.Object({
  name: Type.String(),
  found: nullable(Type.String(), 'null: the description has none.'),
  without: Type.String({ description: 'What is off, or works in another way, without it.' }),
  override: nullable(Type.String(), 'The key of service.routes that gives it.'),
})

const Status = component(
  'Status',
  Type.Object({
    version: Type.String(),
    started_at: time(),
    leader: Type.Boolean({ description: 'Whether this replica holds the stream and the sweep.' }),
    channels: Type.Object({ stream: Channel, webhook: Channel, poll: Channel }),
    routes: Type.Array(ServiceRoute, { description: 'What discovery found.' }),
    discovery: Type.Array(DiscoveryResult, {
      description: 'What the interface leaves open, and what the absence of each costs.',
    }),
    queues: Type.Object({
      deliveries_pending: Type.Integer(),
      deliveries_dead: Type.Integer(),
      calls_open: Type.Integer(),
      sessions_to_read: Type.Integer({ description: 'Sessions with a hint that are not read yet.' }),
    }),
    needs_action: Type.Array(
      Type.Object({
        function: Type.String({ description: 'As the agent calls it, its first 65 characters.' }),
        calls: Type.Integer({ description: 'Calls that sessions wait for now.' }),
        oldest_at: time('When the oldest was created.'),
        advice: Type.String(),
      }),
      {
        description:
          'Functions that sessions wait for and no configured tool is: at most twenty, the oldest first.',
      },
    ),
    throughput: Type.Array(
      Type.Object({
        at: time('When the minute began.'),
        facts: Type.Integer({ description: 'New facts.' }),
        delivered: Type.Integer({ description: 'Callbacks that were taken.' }),
        failed: Type.Integer({ description: 'Attempts of callbacks that came to nothing.' }),
        calls: Type.Integer({ description: 'Function calls that ended.' }),
      }),
      {
        description:
          'The last sixty minutes in which this process ran, the oldest first, the current one last.',
      },
    ),
    service: Type.Object({
      base_url: Type.String({ description: 'Of the configuration.' }),
      console_url: Type.String({ description: 'Where people answer; {session_id} stands for the session.' }),
      held_until: nullable(time(), 'No request is sent before, because the service asked for it.'),
    }),
    store: Type.Object(
      {
        state: oneOf(['accepting', 'refusing']),
        since: time(),
        reason: nullable(oneOf([...STORE_REFUSALS]), 'Why it refuses.'),
      },
      { description: 'Whether the store took the last write.' },
    ),
    slots: Type.Object({
      used: Type.Integer(),
      limit: nullable(Type.Integer(), 'Of the configuration: the service does not report it.'),
    }),
    token: Type.Object({
      state: oneOf(['accepted', 'rejected', 'unknown']),
      scopes: nullable(Type.Array(Type.String())),
      expires_at: nullable(time()),
    }),
  }),
)

/** As it is sent. */
export type StatusReport = Static<typeof Status.schema>

export function statusRoutes(status: () => StatusReport | Promise<StatusReport>): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: '/api/status',
        summary: 'How the sidecar and its channels fare.',
        success: { status: 200, description: 'The status.', content: Status },
      },
      async () => ok(await status()),
    ),
  ]
}
