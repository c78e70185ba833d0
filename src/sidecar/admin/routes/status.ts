import { Type, type Static } from 'typebox'
import { STORE_REFUSALS } from '../../../core/observer.ts'
import { component, nullable, oneOf, time } from '../component.ts'
import { route, type Route } from '../route.ts'

const Channel = Type.Object({
  state: oneOf(['disabled', 'connecting', 'live', 'waiting', 'stopped']),
  since: time('When this state began.'),
  last_error: nullable(Type.String()),
  last_event_at: nullable(time()),
  lag_seconds: nullable(Type.Number(), 'The lag of the last fact that the channel reported.'),
  last_seq: nullable(Type.String(), 'Stream: the last seq stored.'),
})

const ServiceRoute = Type.Object({
  operation: Type.String(),
  method: nullable(Type.String()),
  path: nullable(Type.String(), 'A template, as in the document; null when it was not found.'),
  how: oneOf(['document', 'override', 'default', 'missing']),
  reason: nullable(Type.String(), 'The reason why it was not found, and how to fix it.'),
})

const DiscoveryResult = Type.Object({
  name: Type.String(),
  found: nullable(Type.String(), 'null: the description has none.'),
  without: Type.String({ description: 'The consequence of its absence.' }),
  override: nullable(Type.String(), 'The key of service.routes that sets it.'),
})

const Status = component(
  'Status',
  Type.Object({
    version: Type.String(),
    started_at: time(),
    leader: Type.Boolean({ description: 'Whether this replica reads the stream and the list of sessions.' }),
    replicas: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String({ description: 'The name of its machine.' }),
        version: Type.String(),
        self: Type.Boolean({ description: 'Whether it is the replica that answers this request.' }),
        leader: Type.Boolean(),
        shards: Type.Integer({ description: 'How many of the 64 shards of sessions it owns.' }),
        epoch: nullable(
          Type.Integer(),
          'The highest epoch of its leases. A lease that is taken gets a new, higher one.',
        ),
        configuration: nullable(
          Type.String(),
          'A fingerprint: equal for equal configurations. null: unknown.',
        ),
        seen_seconds_ago: Type.Number({ description: 'Since its last heartbeat.' }),
        started_at: time(),
      }),
      { description: 'The processes that share the store; none with SQLite, which has one.' },
    ),
    channels: Type.Object({ stream: Channel, webhook: Channel, poll: Channel }),
    routes: Type.Array(ServiceRoute, { description: 'The result of discovery.' }),
    discovery: Type.Array(DiscoveryResult, {
      description: 'Details that the interface leaves open, each with the consequence of its absence.',
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
        calls: Type.Integer({ description: 'Open calls that sessions wait for.' }),
        oldest_at: time('When the oldest was created.'),
        advice: Type.String(),
      }),
      {
        description:
          'Functions that sessions wait for and that no configured tool answers: at most twenty, the oldest first.',
      },
    ),
    throughput: Type.Array(
      Type.Object({
        at: time('When the minute began.'),
        facts: Type.Integer({ description: 'New facts.' }),
        delivered: Type.Integer({ description: 'Delivered callbacks.' }),
        failed: Type.Integer({ description: 'Failed attempts of callbacks.' }),
        calls: Type.Integer({ description: 'Function calls that ended.' }),
      }),
      {
        description: 'The last sixty minutes in which a replica ran, the oldest first, the current one last.',
      },
    ),
    service: Type.Object({
      base_url: Type.String({ description: 'As configured.' }),
      console_url: Type.String({
        description: 'The page where people answer; {session_id} is replaced by the session.',
      }),
      held_until: nullable(
        time(),
        'No request is sent before this time, because the service requested the wait.',
      ),
    }),
    store: Type.Object(
      {
        state: oneOf(['accepting', 'refusing']),
        since: time(),
        reason: nullable(oneOf([...STORE_REFUSALS]), 'The reason why it refuses.'),
      },
      { description: 'Whether the last write of the store succeeded.' },
    ),
    slots: Type.Object({
      used: Type.Integer(),
      limit: nullable(Type.Integer(), 'As configured: the service does not report it.'),
    }),
    token: Type.Object({
      state: oneOf(['accepted', 'rejected', 'unknown']),
      scopes: nullable(Type.Array(Type.String())),
      expires_at: nullable(time()),
    }),
  }),
)

/** The body of the answer. */
export type StatusReport = Static<typeof Status.schema>

export function statusRoute(status: () => StatusReport | Promise<StatusReport>): Route {
  return route(
    {
      method: 'GET',
      path: '/api/status',
      summary: 'The state of the sidecar and its channels.',
      success: { status: 200, description: 'The status.', content: Status },
    },
    status,
  )
}
