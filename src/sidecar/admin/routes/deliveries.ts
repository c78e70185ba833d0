import { Type, type Static } from 'typebox'
import type { DeliveryRecord, DeliveryStatus } from '../../../core/delivery.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { AdminActions } from '../actions.ts'
import { asked, component, nullable, oneOf, time } from '../component.ts'
import { entryOf } from '../entry.ts'
import { listRoute } from '../page.ts'
import { Problem } from '../problem.ts'
import { route, type Route } from '../route.ts'
import { timeOf, TimeGiven } from '../time.ts'
import { requireHandler } from './handlers.ts'

const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead']
const Status = oneOf(STATUSES)

const Delivery = component(
  'Delivery',
  Type.Object({
    id: Type.String(),
    fact_id: Type.String(),
    type: Type.String({ description: 'The type of the fact.' }),
    handler: Type.String(),
    session_id: nullable(Type.String()),
    status: Status,
    attempts: Type.Array(
      Type.Object({
        at: time(),
        status: Type.Optional(
          Type.Integer({
            description: 'The status that the handler answered; 200 for a module that returned.',
          }),
        ),
        error: Type.Optional(Type.String({ description: 'The reason for a missing or invalid answer.' })),
        ms: Type.Number({ description: 'Duration, milliseconds.' }),
      }),
    ),
    last_answer: nullable(
      Type.String(),
      'The first 1 KiB of the last failed response of the handler, with likely secrets removed.',
    ),
    next_at: nullable(
      time(),
      'The earliest time of the next attempt; 0 when it is due. null unless pending.',
    ),
  }),
)

const Retried = component(
  'Retried',
  Type.Object({
    count: Type.Integer({ description: 'Deliveries that are due again.' }),
    dry_run: Type.Boolean(),
  }),
)

export function deliveryRoutes(store: StoreReader, actions: AdminActions): Route[] {
  return [
    listRoute(
      {
        path: '/api/deliveries',
        summary: 'Deliveries of facts to handlers, the newest fact first.',
        of: 'deliveries',
        entry: Delivery,
        query: {
          status: Type.Optional(Status),
          handler: Type.Optional(Type.String()),
          fact_id: Type.Optional(Type.String()),
          session_id: Type.Optional(Type.String()),
          since: Type.Optional(
            Type.String({ description: 'Only deliveries of facts stored since this time (ISO 8601).' }),
          ),
        },
        show: (record: DeliveryRecord) => record,
      },
      ({ fact_id: factId, session_id: sessionId, since, ...query }) =>
        store.deliveries({ ...query, factId, sessionId, since: sinceOf(since) }),
    ),
    route(
      {
        method: 'GET',
        path: '/api/deliveries/{id}',
        summary: 'One delivery.',
        success: { status: 200, description: 'The delivery.', content: Delivery },
        problems: [404],
      },
      async ({ params }) => entryOf(Delivery, await requireDelivery(store, params['id'] ?? '')),
    ),
    route(
      {
        method: 'POST',
        path: '/api/deliveries/{id}/retry',
        summary:
          'Sends a dead or delivered fact again. A pending one that waits for its next attempt is sent now.',
        success: { status: 202, description: 'The delivery is due.', content: Retried },
        problems: [404, 409],
      },
      async ({ params }) => {
        const id = params['id'] ?? ''
        await requireDelivery(store, id)
        const { count } = await actions.retryDelivery(id)
        if (count === 0) throw new Problem('conflict', 'the delivery is pending, and is due already')
        return { count, dry_run: false }
      },
    ),
    route(
      {
        method: 'POST',
        path: '/api/deliveries/retry',
        summary: 'Delivers dead letters again.',
        body: asked({
          status: Type.Literal('dead', { default: 'dead' }),
          handler: Type.Optional(Type.String({ description: 'Only those of this handler.' })),
          since: Type.Optional(TimeGiven),
          dry_run: Type.Boolean({ default: false, description: 'Only counts them.' }),
        }),
        success: {
          status: 202,
          description: 'The number of deliveries that are pending again.',
          content: Retried,
        },
        problems: [404],
      },
      async ({ body: { handler, since, dry_run: dryRun } }) => {
        if (handler !== undefined) await requireHandler(store, actions, handler)
        const { count } = await actions.retryDeliveries({
          dryRun,
          handler,
          since: sinceOf(since),
        })
        return { count, dry_run: dryRun }
      },
    ),
  ]
}

function sinceOf(given: Static<typeof TimeGiven> | undefined): number | undefined {
  return given === undefined ? undefined : timeOf('since', given)
}

async function requireDelivery(store: StoreReader, id: string): Promise<DeliveryRecord> {
  const record = await store.delivery(id)
  if (record === null) throw new Problem('not_found', 'there is no delivery with that id')
  return record
}
