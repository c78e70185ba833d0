import { STATE_TYPES, transcriptType, type StateType } from './fact.ts'
import { guess } from '../std/nearest.ts'

/** Names of the persisted events of the service's stream (rules EVT-38 to EVT-62). */
const PERSISTED_EVENTS = [
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

/** The transient events that the interface names. There are others, about progress. */
const TRANSIENT_EVENTS = ['agent.text', 'agent.thinking'] as const

export type PersistedEvent = (typeof PERSISTED_EVENTS)[number]
export type TransientType = (typeof TRANSIENT_EVENTS)[number]

/** What `transcriptType` returns, as a type. */
export type TranscriptTypeOf<Name extends string> = Name extends StateType ? `stream.${Name}` : Name

/** Every type that a handler can select and that this version knows. */
export const EVENT_TYPES: readonly string[] = [
  ...STATE_TYPES,
  ...PERSISTED_EVENTS.map(transcriptType),
  ...TRANSIENT_EVENTS,
]

/** `turn.*`, `session.*` …: the prefixes of known types. */
export const EVENT_FAMILIES: readonly string[] = [...new Set(EVENT_TYPES.flatMap(familiesOf))]

function familiesOf(type: string): string[] {
  const words = type.split('.')
  return words.slice(1).map((_, index) => `${words.slice(0, index + 1).join('.')}.*`)
}

/** The warning about a type or prefix that this version does not know; null when it is known. */
export function doubtAbout(pattern: string): string | null {
  if (pattern === '*' || EVENT_TYPES.includes(pattern) || EVENT_FAMILIES.includes(pattern)) return null
  const what = pattern.endsWith('.*') ? 'is not a prefix of a known event type' : 'is not a known event type'
  return `${what}: nothing matches it unless the service sends it.${guess(pattern, [...EVENT_TYPES, ...EVENT_FAMILIES])}`
}
