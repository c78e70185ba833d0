import type { PersistedEvent } from '../core/event-type.ts'
import type { HintScope } from '../core/hint.ts'

/**
 * What the name of a frame or webhook implies. For example, `turn.ended` implies that the session's turns must be
 * read, 60 ms later, and that the read will show the fact with the subject `turn.final/<turn id>`.
 */
export interface Implication {
  scope: HintScope
  /** Milliseconds that the read may wait, so that several hints cost one read. */
  delay: number
  /**
   * The subject of the expected fact (see Fact.subject), without the id after the `/`. The prefix decides whether
   * that is the id of a turn, a call or a session.
   */
  subject?: `${'turn' | 'action' | 'session'}.${string}`
}

/** Names of webhook events. */
export type WebhookEvent =
  | 'session.created'
  | 'session.action_required'
  | 'session.working'
  | 'session.idle'
  | 'session.failed'
  | 'turn.completed'
  | 'turn.failed'

/** By the name of a persisted frame; null: no state fact follows from it. */
export const FRAME_IMPLICATIONS = tableOf<PersistedEvent, Implication | null>({
  'turn.started': { scope: 'turns', delay: 30, subject: 'turn.started' },
  // Artifacts may be final as soon as the turn is: then the same read shows both.
  'turn.ended': { scope: 'turns', delay: 60, subject: 'turn.final' },
  'tool.required': { scope: 'session', delay: 0, subject: 'action.required' },
  'approval.requested': { scope: 'session', delay: 0, subject: 'action.required' },
  'question.asked': { scope: 'session', delay: 0, subject: 'action.required' },
  'tool.resolved': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'approval.resolved': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'question.answered': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'artifact.created': { scope: 'artifacts', delay: 400 },
  'agent.error': { scope: 'turns', delay: 300 },
  'mcp.unavailable': { scope: 'turns', delay: 300 },
  'workspace.recovery_failed': { scope: 'turns', delay: 300 },
  'message.dequeued': { scope: 'turns', delay: 300 },
  'agent.message': null,
  'agent.tool_call': null,
  'agent.tool_result': null,
  'agent.compaction': null,
  'agent.todos': null,
  'user.message': null,
  'message.queued': null,
  'file.changed': null,
  'sandbox.created': null,
  'sandbox.paused': null,
  'sandbox.resumed': null,
  'preview.ready': null,
})

/** A frame name that this version does not know may imply any change: the turns are read, but not at once. */
export const UNKNOWN_FRAME: Implication = { scope: 'turns', delay: 1000 }

/** A frame that names no session may concern any: one sweep for all such frames. */
export const FRAME_WITHOUT_SESSION: Implication = { scope: 'session', delay: 2000 }

/** By the name of a webhook event. The delay of 100 ms joins the deliveries of one change, which come together. */
export const WEBHOOK_IMPLICATIONS = tableOf<WebhookEvent, Implication>({
  'session.created': { scope: 'turns', delay: 100, subject: 'session.created' },
  'session.action_required': { scope: 'session', delay: 100, subject: 'session.requires_action' },
  'session.working': { scope: 'turns', delay: 100, subject: 'session.working' },
  'session.idle': { scope: 'turns', delay: 100, subject: 'session.idle' },
  'session.failed': { scope: 'turns', delay: 100, subject: 'session.failed' },
  'turn.completed': { scope: 'turns', delay: 100, subject: 'turn.final' },
  'turn.failed': { scope: 'turns', delay: 100, subject: 'turn.final' },
})

/** A webhook that names a session, under an event name that this version does not know. */
export const UNKNOWN_WEBHOOK: Implication = { scope: 'turns', delay: 100 }

/** A genuine webhook that names no session: one sweep. */
export const WEBHOOK_WITHOUT_SESSION: Implication = { scope: 'session', delay: 100 }

/** A Map, because the names are external input: `constructor` must not be an entry. */
function tableOf<Name extends string, Value>(
  table: Readonly<Record<Name, Value>>,
): ReadonlyMap<string, Value> {
  return new Map(Object.entries<Value>(table))
}
