import type { PersistedEvent, TransientType } from '../../core/event-type.ts'
import type { Open } from '../../std/open.ts'

/** Fields that this version does not know. */
export interface Fields {
  [field: string]: unknown
}

/**
 * The fields of payloads that the interface of the service names. They are optional because a frame's payload is not
 * checked. Without the stream the payload of a transcript fact is an item of the session, which has `content` instead.
 */
interface StatedPayloads {
  'agent.message': { text?: string }
  'agent.text': { delta?: string }
  'agent.tool_call': { toolName?: string; args?: unknown }
  'tool.required': { name?: string; arguments?: unknown }
  'mcp.unavailable': { server?: string; reason?: string }
  'approval.resolved': {
    approved?: boolean
    toolCallId?: string
    name?: string
    /** Why the approval was denied: by the mode `read_only`, or by a rule. */
    code?: Open<'denied_read_only' | 'denied_by_rule'>
  }
}

/** The payload of an event of the stream. */
export type Payload<Name extends PersistedEvent | TransientType> = Name extends keyof StatedPayloads
  ? StatedPayloads[Name] & Fields
  : Fields
