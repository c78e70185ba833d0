import type { HandlerContext } from '../core/handler.ts'

/** Resources as the service gives them; fields beyond these are there too. */
export interface TurnResource {
  id: string
  session_id: string
  status: string
  created_at: number
  started_at?: number | null
  completed_at?: number | null
  artifacts?: string | null
  artifacts_skipped?: { path: string; reason: string }[]
  error?: unknown
  [field: string]: unknown
}

export interface ActionResource {
  type: 'function_call' | 'approval' | 'question' | (string & {})
  turn_id: string
  call_id: string
  name?: string
  arguments?: unknown
  created_at: number
  expires_at: number | null
  [field: string]: unknown
}

export interface SessionSummary {
  title: string | null
  metadata: Record<string, string>
  status: string
  [field: string]: unknown
}

export interface CallSummary {
  call_id: string
  name: string
  outcome: string
  attempts: number
  created_at: number | null
  expires_at: number | null
  received_at: number
  started_at: number | null
  finished_at: number | null
  ended_at: number | null
  [field: string]: unknown
}

interface SessionData {
  session: SessionSummary
}

interface TurnData extends SessionData {
  turn: TurnResource
}

interface ActionData extends SessionData {
  action: ActionResource
}

interface CallData {
  call: CallSummary
  session: SessionSummary | null
}

/** Transcript facts and transient events. */
export interface TranscriptData {
  payload: Record<string, unknown>
  internal_type: string | null
  /** A number, or its digits as text where a double would round it; null on transient events and items. */
  seq: number | string | null
  session: SessionSummary | null
}

/** `data` by the fact's type (product.md, Facts). */
export interface EventData {
  'session.created': SessionData
  'session.deleted': SessionData
  'session.working': SessionData
  'session.idle': SessionData
  'session.requires_action': SessionData
  /** `item`: why a run could not start, when no turn was opened. */
  'session.failed': SessionData & { item?: Record<string, unknown> }
  'turn.started': TurnData
  'turn.completed': TurnData
  'turn.failed': TurnData
  'turn.ended': TurnData
  'turn.settled': TurnData & { artifacts?: unknown[] }
  'action.required': ActionData
  'action.resolved': ActionData
  'call.answered': CallData
  'call.failed': CallData
  'call.not_delivered': CallData
}

export interface EventEnvelope<Type extends string, Data> {
  type: Type
  /** ISO 8601. */
  timestamp: string
  /** The same on every attempt: the idempotency key. */
  id: string
  session_id: string | null
  data: Data
  /** `test`: the event was made up by `session-sidecar trigger`, to try the handler. */
  delivery: { attempt: number; handler: string; test?: true }
  /** When each channel first told of it, milliseconds. */
  seen: { stream?: number; webhook?: number; poll?: number }
}

/** A callback, told apart by its `type`; types that are no state fact's carry a transcript. */
export type Event = { [Type in keyof EventData]: EventEnvelope<Type, EventData[Type]> }[keyof EventData]

export type TranscriptEvent = EventEnvelope<string, TranscriptData>

/**
 * Narrows a callback to one type of state fact. `event.type === …` alone does not: the type of a transcript event may be any
 * text.
 */
export function isFact<Type extends keyof EventData>(
  event: Event | TranscriptEvent,
  type: Type,
): event is Extract<Event, { type: Type }> {
  return event.type === type
}

export type EventOf<Type extends string> = Type extends keyof EventData
  ? EventEnvelope<Type, EventData[Type]>
  : Type extends '*'
    ? Event | TranscriptEvent
    : Type extends `${infer Prefix}.*`
      ?
          | Extract<Event, { type: `${Prefix}.${string}` }>
          | (Prefix extends 'session' | 'turn' | 'call' ? never : TranscriptEvent)
      : TranscriptEvent

/** The body of the request by which a tool is called over HTTP (product.md, Function tools). */
export interface ToolCallRequest {
  type: 'tool.call'
  /** Also the idempotency key. */
  call_id: string
  name: string
  arguments: unknown
  session_id: string
  turn_id: string | null
  /** Milliseconds on the service's clock. */
  created_at: number | null
  expires_at: number | null
  attempt: number
  /** An earlier run was cut short and may have had its effect. */
  uncertain: boolean
  session: { title: string | null; metadata: Record<string, string> }
  [field: string]: unknown
}

/** Throwing means retry, throwing DeadLetter means dead. */
export type EventHandler<Type extends string> = (event: EventOf<Type>, context: HandlerContext) => unknown
