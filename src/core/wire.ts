import { isObject, numberOf, stringOf, type JsonObject } from './json.ts'
import type { Action, Item, Session, Turn } from './resource.ts'

/**
 * Resources as the service sends them and as we store them. null: a field that we rely on is missing or of another type.
 * Unknown fields stay in `raw`; null and absent are the same (interface.md, Resources).
 */

export function parseSession(raw: unknown): Session | null {
  if (!isObject(raw)) return null
  const id = stringOf(raw.id)
  const status = stringOf(raw.status)
  const updatedAt = numberOf(raw.updated_at)
  if (id === null || status === null || updatedAt === null) return null
  const actions = Array.isArray(raw.required_actions) ? raw.required_actions : []
  return {
    id,
    status,
    createdAt: numberOf(raw.created_at),
    updatedAt,
    title: typeof raw.title === 'string' ? raw.title : null,
    metadata: stringsOf(raw.metadata),
    actions: actions.flatMap((entry) => parseAction(entry) ?? []),
    raw,
  }
}

export function parseAction(raw: unknown): Action | null {
  if (!isObject(raw)) return null
  const type = stringOf(raw.type)
  const callId = stringOf(raw.call_id)
  if (type === null || callId === null) return null
  return {
    type,
    callId,
    turnId: stringOf(raw.turn_id),
    name: stringOf(raw.name),
    arguments: raw.arguments,
    createdAt: numberOf(raw.created_at),
    expiresAt: numberOf(raw.expires_at),
    raw,
  }
}

/** `sessionId` stands in where the turn does not name its session. */
export function parseTurn(raw: unknown, sessionId?: string): Turn | null {
  if (!isObject(raw)) return null
  const id = stringOf(raw.id)
  const status = stringOf(raw.status)
  const session = stringOf(raw.session_id) ?? sessionId ?? null
  if (id === null || status === null || session === null) return null
  return {
    id,
    sessionId: session,
    status,
    createdAt: numberOf(raw.created_at),
    startedAt: numberOf(raw.started_at),
    completedAt: numberOf(raw.completed_at),
    artifacts: stringOf(raw.artifacts),
    raw,
  }
}

export function parseItem(raw: unknown, sessionId?: string): Item | null {
  if (!isObject(raw)) return null
  const id = stringOf(raw.id)
  const session = stringOf(raw.session_id) ?? sessionId ?? null
  if (id === null || session === null) return null
  return {
    id,
    sessionId: session,
    type: stringOf(raw.type) ?? 'unknown',
    event: isObject(raw.detail) ? stringOf(raw.detail.event) : null,
    createdAt: numberOf(raw.created_at),
    raw,
  }
}

function stringsOf(value: unknown): Record<string, string> {
  const strings: Record<string, string> = Object.create(null) as Record<string, string>
  if (!isObject(value)) return strings
  for (const [key, entry] of Object.entries(value as JsonObject)) {
    if (typeof entry === 'string') strings[key] = entry
  }
  return strings
}
