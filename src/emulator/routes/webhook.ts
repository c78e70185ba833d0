import { Type } from 'typebox'
import { WEBHOOK_EVENTS } from '../event.ts'
import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { invalid, notFound, refuse } from '../refusal.ts'
import { viewList, viewSubscription } from '../view.ts'

const body = Type.Object(
  {
    url: Type.String({ description: 'Must be https.' }),
    events: Type.Optional(
      Type.Array(Type.Enum([...WEBHOOK_EVENTS]), { description: 'Empty: all.', default: [] }),
    ),
  },
  { additionalProperties: false },
)

export function webhookOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'createWebhook',
      method: 'POST',
      path: '/v1/webhooks',
      summary: 'Subscribe an address to webhook events',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      body,
      success: {
        status: 201,
        description: 'The only reply that shows `secret`.',
        schema: shape('WebhookSubscription'),
      },
      refusals: [409],
      handle: ({ world, body: { url, events = [] } }) => {
        checkAddress(url, world.allowHttpWebhooks)
        const twin = world.webhooks.twin(url, events)
        if (twin !== undefined) {
          throw refuse('conflict', `the subscription ${twin.id} has this address and these events already`)
        }
        const subscription = world.webhooks.add(url, events)
        return { status: 201, body: { ...viewSubscription(subscription), secret: subscription.secret } }
      },
    }),
    operation({
      id: 'listWebhooks',
      method: 'GET',
      path: '/v1/webhooks',
      summary: 'List webhook subscriptions',
      access: 'sessions:read',
      cost: 'read',
      query: plainPage,
      success: {
        status: 200,
        description: 'One page, without secrets.',
        schema: shape('WebhookSubscriptionList'),
      },
      handle: ({ world, query }) => {
        const all = world.webhooks.all()
        return { status: 200, body: viewList(details, pageOf(all, query, placeById(all)), viewSubscription) }
      },
    }),
    operation({
      id: 'deleteWebhook',
      method: 'DELETE',
      path: '/v1/webhooks/{webhook_id}',
      summary: 'End a webhook subscription',
      access: 'sessions:write',
      cost: 'write',
      success: { status: 200, description: 'Deleted.', schema: shape('Deleted') },
      refusals: [404],
      handle: ({ world, params }) => {
        const id = params['webhook_id'] ?? ''
        if (!world.webhooks.remove(id)) throw notFound('webhook subscription', id)
        return { status: 200, body: { object: 'webhook.subscription', id, deleted: true } }
      },
    }),
  ]
}

function checkAddress(url: string, allowHttp: boolean): void {
  if (!URL.canParse(url)) throw invalid(`url ${JSON.stringify(url)} is not an address`)
  const { protocol, hostname } = new URL(url)
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  if (protocol === 'https:' || (allowHttp && protocol === 'http:' && loopback)) return
  throw invalid(allowHttp ? 'url must be https, or http on loopback' : 'url must be https')
}
