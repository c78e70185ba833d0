import type { World } from '../world.ts'
import { credentialSchema, replySchema, savedAgentSchema, subscriptionSchema, tokenSchema } from './schema.ts'
import { shelf, type Kept } from './shelf.ts'

/** Everything of the organization that belongs to no session. */
export function keptResources({ tokens, models, savedAgents, webhooks, idempotency }: World): Kept[] {
  return [
    shelf({
      kind: 'token',
      schema: tokenSchema,
      entries: () => tokens.all(),
      idOf: ({ id }) => id,
      write: (token) => ({ ...token, scopes: [...token.scopes] }),
      read: (record) => record,
      restore: (token) => tokens.restore(token),
    }),
    shelf({
      kind: 'credential',
      schema: credentialSchema,
      entries: () => models.all(),
      idOf: ({ id }) => id,
      write: ({ baseUrl, ...rest }) => ({ ...rest, ...(baseUrl === undefined ? {} : { baseUrl }) }),
      read: (record) => ({ ...record, baseUrl: record.baseUrl }),
      restore: (credential) => models.restore(credential),
    }),
    shelf({
      kind: 'agent',
      schema: savedAgentSchema,
      entries: () => savedAgents.all(),
      idOf: ({ id }) => id,
      write: ({ tools, ...rest }) => ({ ...rest, ...(tools === undefined ? {} : { tools }) }),
      read: (record) => ({ ...record, tools: record.tools }),
      restore: (saved) => savedAgents.restore(saved),
    }),
    shelf({
      kind: 'subscription',
      schema: subscriptionSchema,
      entries: () => webhooks.all(),
      idOf: ({ id }) => id,
      write: (subscription) => ({ ...subscription, events: [...subscription.events] }),
      read: (record) => record,
      restore: (subscription) => webhooks.restore(subscription),
    }),
    shelf({
      kind: 'reply',
      schema: replySchema,
      entries: () => idempotency.answered().filter(({ answer }) => answer.bytes === undefined),
      idOf: ({ id, at }) => `${at} ${id}`,
      final: () => true,
      write: ({ answer: { status, body, headers }, ...rest }) => ({
        ...rest,
        answer: { status, body, ...(headers === undefined ? {} : { headers }) },
      }),
      read: (record) => record,
      restore: (first) => idempotency.restore(first),
    }),
  ]
}
