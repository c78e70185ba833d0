import type { Hint, HintScope } from '../../core/hint.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'

/** Names of webhook events (interface.md, Webhook events), and the state that each claims. */
const NAMES: Readonly<Record<string, { scope: HintScope; subject: string }>> = {
  'session.created': { scope: 'turns', subject: 'session.created' },
  'session.action_required': { scope: 'session', subject: 'session.requires_action' },
  'session.working': { scope: 'turns', subject: 'session.working' },
  'session.idle': { scope: 'turns', subject: 'session.idle' },
  'session.failed': { scope: 'turns', subject: 'session.failed' },
  'turn.completed': { scope: 'turns', subject: 'turn.final' },
  'turn.failed': { scope: 'turns', subject: 'turn.final' },
}

/** Hints of one delivery share a reading with the others that come with it. */
const DELAY = 100
/** Levels of the envelope that are searched; ids lie near the top. */
const DEPTH = 4

/**
 * Reads the verified body of a webhook. The envelope is not shown, so the event's name is whatever string value is one
 * of the known names, and ids go by the names of their keys. A body that we cannot make sense of asks for a sweep:
 * a genuine hint is never thrown away.
 */
export function readNotice(body: unknown, at: number): { hint: Hint; readable: boolean } {
  const sweep: Hint = { sessionId: null, channel: 'webhook', at, scope: 'session', delay: DELAY }
  if (!isObject(body)) return { hint: sweep, readable: false }
  const found: Found = { name: null, session: null, turn: null }
  search(body, DEPTH, found)
  if (found.session === null) return { hint: sweep, readable: false }
  const news = found.name === null ? undefined : NAMES[found.name]
  const hint: Hint = {
    sessionId: found.session,
    channel: 'webhook',
    at,
    scope: news?.scope ?? 'turns',
    delay: DELAY,
  }
  if (news !== undefined) {
    const key = news.subject.startsWith('turn') ? found.turn : found.session
    if (key !== null) hint.subject = `${news.subject}/${key}`
  }
  return { hint, readable: news !== undefined }
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
      if (Object.hasOwn(NAMES, value)) found.name ??= value
      else if (key === 'session_id' || key === 'sessionId' || key === 'session') found.session ??= value
      else if (key === 'turn_id' || key === 'turnId' || key === 'turn') found.turn ??= value
    } else if (isObject(value) && depth > 1) {
      if (key === 'session') found.session ??= stringOf(value.id)
      if (key === 'turn') found.turn ??= stringOf(value.id)
      search(value, depth - 1, found)
    }
  }
}
