import { isObject, numberOf, stringOf } from '../core/json.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { Action, Health, Item, Page, Session, Turn, WebhookSubscription } from '../core/resource.ts'

/**
 * The resources as the service sends them (interface.md, Resources) turned into ours. Unknown fields stay in `raw`;
 * what we rely on must be there.
 */

/** An answer lacks something that we rely on. */
export class Malformed extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Malformed'
  }
}

/** Told of each entry of a list that could not be read and was left out. */
export type OnSkipped = (fault: Malformed) => void

export function parseSession(value: unknown, onSkipped: OnSkipped): Session {
  const raw = objectIn(value, 'a session')
  const status = text(raw, 'status', 'a session')
  return {
    id: text(raw, 'id', 'a session'),
    status,
    createdAt: numberOf(raw['created_at']),
    updatedAt: number(raw, 'updated_at', 'a session'),
    title: stringOf(raw['title']),
    metadata: stringsOf(raw['metadata']),
    actions: parseActions(raw['required_actions'], status, onSkipped),
    raw,
  }
}

/** A session may leave the list out only when it waits for nothing: an unread list must not look like an empty one. */
function parseActions(value: unknown, status: string, onSkipped: OnSkipped): Action[] {
  if (value === undefined || value === null) {
    if (status === 'requires_action')
      throw new Malformed('a session that requires action has no required_actions')
    return []
  }
  if (!Array.isArray(value)) throw new Malformed('required_actions of a session is not a list')
  return readable(value, parseAction, onSkipped)
}

/** Entries of unknown type are kept: they are for a person, or for a later version. */
export function parseAction(value: unknown): Action {
  const raw = objectIn(value, 'a required action')
  return {
    type: text(raw, 'type', 'a required action'),
    callId: text(raw, 'call_id', 'a required action'),
    turnId: stringOf(raw['turn_id']),
    name: stringOf(raw['name']),
    arguments: raw['arguments'],
    createdAt: numberOf(raw['created_at']),
    expiresAt: numberOf(raw['expires_at']),
    raw,
  }
}

/** `sessionId` is the session whose turns were asked for, in case the turn does not say. */
export function parseTurn(value: unknown, sessionId: string): Turn {
  const raw = objectIn(value, 'a turn')
  return {
    id: text(raw, 'id', 'a turn'),
    sessionId: stringOf(raw['session_id']) ?? sessionId,
    status: text(raw, 'status', 'a turn'),
    createdAt: numberOf(raw['created_at']),
    startedAt: numberOf(raw['started_at']),
    completedAt: numberOf(raw['completed_at']),
    artifacts: stringOf(raw['artifacts']),
    raw,
  }
}

export function parseItem(value: unknown, sessionId: string): Item {
  const raw = objectIn(value, 'an item')
  const { detail } = raw
  return {
    id: text(raw, 'id', 'an item'),
    sessionId: stringOf(raw['session_id']) ?? sessionId,
    type: text(raw, 'type', 'an item'),
    event: isObject(detail) ? stringOf(detail['event']) : null,
    createdAt: numberOf(raw['created_at']),
    raw,
  }
}

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

/** The service's word in the answer to an answer. */
export function parseOutcome(value: unknown): string | null {
  return isObject(value) ? stringOf(value['outcome']) : null
}

/**
 * A list (interface.md, Conventions). One entry that cannot be read does not lose the others: it is left out and told.
 * Without `last_id` the last entry's own id leads on.
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

export function parseObject(value: unknown): JsonObject {
  return objectIn(value, 'an entry')
}

function readable<T>(entries: readonly Json[], parse: (entry: unknown) => T, onSkipped: OnSkipped): T[] {
  const read: T[] = []
  for (const entry of entries) {
    try {
      read.push(parse(entry))
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      onSkipped(error)
    }
  }
  return read
}

function objectIn(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw new Malformed(`${what} is not an object`)
  return value
}

function text(raw: JsonObject, key: string, what: string): string {
  const value = stringOf(raw[key])
  if (value === null) throw new Malformed(`${what} has no ${key}`)
  return value
}

function number(raw: JsonObject, key: string, what: string): number {
  const value = numberOf(raw[key])
  if (value === null) throw new Malformed(`${what} has no number ${key}`)
  return value
}

/** Values that are not strings are against the interface; they stay in `raw` only. */
function stringsOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
