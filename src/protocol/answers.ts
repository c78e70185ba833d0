import { isObject, stringOf } from '../std/json.ts'
import type { JsonObject } from '../std/json.ts'
import type { Health, Page, WebhookSubscription } from '../core/resource.ts'
import { Malformed, objectIn, readable, text, type OnSkipped } from '../core/wire.ts'

/**
 * Answers of the service that are not stored resources: lists, health, subscriptions, and the reply to a posted
 * answer.
 */

export function parseWebhook(value: unknown): WebhookSubscription {
  const raw = objectIn(value, 'a webhook subscription')
  const { events } = raw
  return {
    id: text(raw, 'id', 'a webhook subscription'),
    url: text(raw, 'url', 'a webhook subscription'),
    events: Array.isArray(events) ? events.filter((event) => typeof event === 'string') : [],
    active: raw['active'] !== false,
    secret: stringOf(raw['secret']),
  }
}

export function parseHealth(value: unknown): Health {
  const raw = objectIn(value, 'the health report')
  const { scopes, usable } = raw
  if (!Array.isArray(scopes)) throw new Malformed('the health report has no list scopes')
  if (typeof usable !== 'boolean') throw new Malformed('the health report has no boolean usable')
  const missing = raw['missing_scopes']
  return {
    scopes: scopes.filter((scope) => typeof scope === 'string'),
    usable,
    missingScopes: Array.isArray(missing) ? missing.filter((scope) => typeof scope === 'string') : [],
  }
}

/** The service's word for the outcome of an answer. */
export function parseOutcome(value: unknown): string | null {
  return isObject(value) ? stringOf(value['outcome']) : null
}

/**
 * A list (rule GEN-22). An unreadable entry is skipped and reported; the others are kept. Without
 * `last_id` the last entry's own id is the cursor.
 */
export function parsePage<T>(value: unknown, parse: (entry: unknown) => T, onSkipped: OnSkipped): Page<T> {
  const raw = objectIn(value, 'a list')
  const { data } = raw
  if (!Array.isArray(data)) throw new Malformed('a list has no data')
  const hasMore = raw['has_more']
  if (typeof hasMore !== 'boolean') throw new Malformed('a list has no boolean has_more')
  const last: unknown = data.at(-1)
  const lastId = stringOf(raw['last_id']) ?? (isObject(last) ? stringOf(last['id']) : null)
  if (hasMore && lastId === null) throw new Malformed('a list has more and no last_id')
  return { data: readable(data, parse, onSkipped), hasMore, lastId }
}

/** Where the interface does not show how a list is paged, the service may send a bare array, or no `has_more`. */
export function asList(value: unknown): unknown {
  if (Array.isArray(value)) return { data: value, has_more: false }
  return isObject(value) && value['has_more'] === undefined ? { ...value, has_more: false } : value
}

/** The interface shows only the id of an artifact. */
export function parseArtifact(value: unknown): JsonObject {
  const raw = objectIn(value, 'an artifact')
  text(raw, 'id', 'an artifact')
  return raw
}
