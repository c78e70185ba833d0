import type { Hint } from '../../core/hint.ts'
import {
  UNKNOWN_WEBHOOK,
  WEBHOOK_IMPLICATIONS,
  WEBHOOK_WITHOUT_SESSION,
  type Implication,
} from '../../protocol/implications.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'

/** Levels of the envelope that are searched; ids are near the top. */
const DEPTH = 4

/**
 * Reads the verified body of a webhook. The interface does not show the envelope, so the name of the event is any
 * string value that is a known name, and ids are found by their keys. An unreadable body causes a sweep: a verified
 * hint is never dropped.
 */
export function readWebhook(body: unknown, at: number): { hint: Hint; readable: boolean } {
  const hintOf = (sessionId: string | null, { scope, delay }: Implication): Hint => ({
    sessionId,
    channel: 'webhook',
    at,
    scope,
    delay,
  })
  if (!isObject(body)) return { hint: hintOf(null, WEBHOOK_WITHOUT_SESSION), readable: false }
  const found: Found = { name: null, session: null, turn: null }
  search(body, DEPTH, found)
  if (found.session === null) return { hint: hintOf(null, WEBHOOK_WITHOUT_SESSION), readable: false }
  const implied = found.name === null ? undefined : WEBHOOK_IMPLICATIONS.get(found.name)
  const hint = hintOf(found.session, implied ?? UNKNOWN_WEBHOOK)
  if (implied?.subject !== undefined) {
    const key = implied.subject.startsWith('turn') ? found.turn : found.session
    if (key !== null) hint.subject = `${implied.subject}/${key}`
  }
  return { hint, readable: implied !== undefined }
}

interface Found {
  name: string | null
  session: string | null
  turn: string | null
}

function search(holder: JsonObject, depth: number, found: Found): void {
  const named = stringOf(holder.object)
  if (named === 'session') found.session ??= stringOf(holder.id)
  if (named === 'turn') found.turn ??= stringOf(holder.id)
  for (const key of Object.keys(holder)) {
    const value = holder[key]
    if (typeof value === 'string') {
      if (stringOf(value) === null) continue
      if (WEBHOOK_IMPLICATIONS.has(value)) found.name ??= value
      else if (key === 'session_id' || key === 'sessionId' || key === 'session') found.session ??= value
      else if (key === 'turn_id' || key === 'turnId' || key === 'turn') found.turn ??= value
    } else if (isObject(value) && depth > 1) {
      if (key === 'session') found.session ??= stringOf(value.id)
      if (key === 'turn') found.turn ??= stringOf(value.id)
      search(value, depth - 1, found)
    }
  }
}
