import { listOf } from './list.ts'
import type { List } from './list.ts'
import { remove } from './remove.ts'
import type { ActOptions, CallOptions, NewWebhook, PageQuery } from './request.ts'
import { readWebhook } from './resource.ts'
import type { WebhookSubscription } from './resource.ts'
import type { Transport } from './transport.ts'

export interface Webhooks {
  /**
   * Only this answer contains the `secret`. @throws {ServiceError} `conflict` for the same address with the same
   * events.
   */
  create(webhook: NewWebhook, options?: ActOptions): Promise<WebhookSubscription>
  list(query?: PageQuery, options?: CallOptions): List<WebhookSubscription>
  delete(webhookId: string, options?: CallOptions): Promise<void>
}

export function webhooksOf(transport: Transport): Webhooks {
  return {
    create: ({ url, events = [] }, options) =>
      transport.call(
        'createWebhook',
        { body: () => ({ url, events }), act: options ?? true },
        options,
        readWebhook,
        'a webhook subscription',
      ),
    list: (query = {}, options) =>
      listOf(
        transport,
        {
          operation: 'listWebhooks',
          query: { ...query },
          read: readWebhook,
          what: 'a webhook subscription',
        },
        options,
      ),
    delete: (webhook, options) => remove(transport, 'deleteWebhook', { webhook }, options),
  }
}
