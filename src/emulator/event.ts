/** The names of persisted stream events (rules EVT-38 to EVT-62). */
export const PERSISTED_EVENTS = [
  'turn.started',
  'turn.ended',
  'agent.message',
  'agent.tool_call',
  'agent.tool_result',
  'agent.compaction',
  'agent.error',
  'agent.todos',
  'user.message',
  'message.queued',
  'message.dequeued',
  'file.changed',
  'approval.requested',
  'approval.resolved',
  'question.asked',
  'question.answered',
  'tool.required',
  'tool.resolved',
  'mcp.unavailable',
  'sandbox.created',
  'sandbox.paused',
  'sandbox.resumed',
  'preview.ready',
  'workspace.recovery_failed',
  'artifact.created',
] as const

export type PersistedType = (typeof PERSISTED_EVENTS)[number]
export type TransientType = 'agent.text' | 'agent.thinking' | 'agent.progress' | 'agent.status'

export const WEBHOOK_EVENTS = [
  'session.created',
  'session.action_required',
  'session.working',
  'session.idle',
  'session.failed',
  'turn.completed',
  'turn.failed',
] as const

export type WebhookType = (typeof WEBHOOK_EVENTS)[number]

/** A payload under construction: `stated` keys are spelled by the interface, `open` ones by the profile. */
export interface Payload {
  stated?: Readonly<Record<string, unknown>>
  open?: Readonly<Record<string, unknown>>
}

/**
 * An event in the form of the profile's frame. `seq` is null for a transient one, `turnId` is null
 * without an open turn.
 */
export interface Event {
  readonly seq: number | null
  readonly at: number
  readonly type: string
  readonly sessionId: string
  readonly turnId: string | null
  readonly payload: Readonly<Record<string, unknown>>
}

export interface PersistedEvent extends Event {
  readonly seq: number
}
