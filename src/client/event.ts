import { isObject, stringOf } from '../std/json.ts'
import type { JsonObject } from '../std/json.ts'
import { seqIn, sessionIn, stopIn, turnIn } from '../protocol/mention.ts'
import type { Frame } from '../protocol/frame.ts'
import { isCursor } from '../core/seq.ts'
import { readJson } from '../std/depth.ts'
import type { Fields } from './shape.ts'

/** The payloads that the interface specifies, by the event's name. */
export interface Payloads {
  'turn.started': Fields
  /** Neutral: read the turn to learn whether it succeeded. */
  'turn.ended': Fields
  'agent.message': Fields & { text: string }
  /** Transient. */
  'agent.text': Fields & { delta: string }
  /** Transient. */
  'agent.thinking': Fields
  'agent.tool_call': Fields & { toolName: string; args?: unknown }
  'agent.tool_result': Fields
  'agent.compaction': Fields
  'agent.error': Fields
  'agent.todos': Fields
  'user.message': Fields
  'message.queued': Fields
  'message.dequeued': Fields
  'file.changed': Fields
  'approval.requested': Fields
  /** `code` is the reason if a rule or mode denied it: `denied_read_only`, `denied_by_rule`. */
  'approval.resolved': Fields & { approved: boolean; toolCallId: string; name: string; code?: unknown }
  'question.asked': Fields
  'question.answered': Fields
  'tool.required': Fields & { name: string; arguments?: unknown }
  'tool.resolved': Fields
  'mcp.unavailable': Fields & { server: string; reason: string }
  'sandbox.created': Fields
  'sandbox.paused': Fields
  'sandbox.resumed': Fields
  'preview.ready': Fields
  'workspace.recovery_failed': Fields
  'artifact.created': Fields
}

export type EventName = keyof Payloads

/** An event of the stream. Unknown names come too; `isEvent` narrows the type. */
export interface StreamEvent<Name extends string = string> {
  type: Name
  /** The cursor to continue after: its `id:`, or the digits of its `seq`. null: a transient event, which is never repeated. */
  seq: string | null
  /** The internal name of the service, for reports to it. */
  internal_type: string | null
  session_id: string | null
  turn_id: string | null
  payload: Name extends EventName ? Payloads[Name] : Fields
  /** All of `data`. Empty when it does not match the interface: then use `raw`. */
  data: Fields
  /** The text of `data`. */
  raw: string
}

/** The fields that the interface requires in each payload. */
const STATED: { readonly [Name in EventName]?: Readonly<Record<string, 'string' | 'boolean'>> } = {
  'agent.message': { text: 'string' },
  'agent.text': { delta: 'string' },
  'agent.tool_call': { toolName: 'string' },
  'approval.resolved': { approved: 'boolean', toolCallId: 'string', name: 'string' },
  'tool.required': { name: 'string' },
  'mcp.unavailable': { server: 'string', reason: 'string' },
}

/** True for an event of this name whose payload has the fields of the interface. */
export function isEvent<Name extends EventName>(event: StreamEvent, name: Name): event is StreamEvent<Name> {
  if (event.type !== name) return false
  return Object.entries(STATED[name] ?? {}).every(([field, kind]) => typeof event.payload[field] === kind)
}

/** Parses any frame; `stop` is the frame with the position from which a replay that reached its limit continues. */
export function readFrame(frame: Frame): { stop: string } | { event: StreamEvent } {
  const data = dataOf(frame.data)
  const payload = isObject(data['payload']) ? data['payload'] : {}
  const seq = frame.id !== undefined && isCursor(frame.id) ? frame.id : seqIn(data, frame.data)
  const stop = stopIn(seq, data, payload, frame.data)
  if (stop !== null) return { stop }
  return {
    event: {
      type: stringOf(data['type']) ?? stringOf(frame.event) ?? 'message',
      seq,
      internal_type: stringOf(data['internal_type']),
      session_id: sessionIn(data, payload),
      turn_id: turnIn(data, payload),
      payload,
      data,
      raw: frame.data,
    },
  }
}

function dataOf(text: string): JsonObject {
  try {
    const data = readJson(text)
    return isObject(data) ? data : {}
  } catch {
    return {}
  }
}
