import type { PersistedEvent, TranscriptTypeOf, TransientType } from '../../core/event-type.ts'
import type { HandlerContext } from '../../core/handler.ts'
import type { Fields, Payload } from './payload.ts'
import type {
  ActionResource,
  ArtifactResource,
  CallSummary,
  ItemResource,
  SessionResource,
  SessionSummary,
  SkippedArtifact,
  TurnResource,
} from './resource.ts'

interface SessionData {
  session: SessionResource
}

interface TurnData {
  turn: TurnResource
  session: SessionSummary
}

interface SettledData extends TurnData {
  /** The published artifacts; null if they could not be listed. */
  artifacts: ArtifactResource[] | null
  /** Files that were not published. */
  artifacts_skipped: SkippedArtifact[]
}

interface ActionData {
  action: ActionResource
  session: SessionSummary
}

interface CallData {
  call: CallSummary
  /** null when the sidecar has never read the session. */
  session: SessionSummary | null
}

/** Transcript facts and transient events. */
export interface TranscriptData<P extends object = Fields> {
  /** As the service sent it. When the stream is off: the item of the session that records the event. */
  payload: P
  internal_type: string | null
  /** A number, or its digits as text if a double would round it. null on transient events, and on items. */
  seq: number | string | null
  session: SessionSummary | null
}

interface StateEventData {
  'session.created': SessionData
  /** The session as last read. */
  'session.deleted': SessionData
  'session.working': SessionData
  'session.idle': SessionData
  'session.requires_action': SessionData
  /** `item`: the item that gives the reason, if a run could not start and no turn was opened. */
  'session.failed': SessionData & { item?: ItemResource }
  'turn.started': TurnData
  'turn.completed': TurnData
  'turn.failed': TurnData
  /** A final status that this version does not know: `turn.status` names it. */
  'turn.ended': TurnData
  'turn.settled': SettledData
  'action.required': ActionData
  'action.resolved': ActionData
  'call.answered': CallData
  'call.failed': CallData
  'call.not_delivered': CallData
}

type TranscriptEventData = {
  [Name in PersistedEvent as TranscriptTypeOf<Name>]: TranscriptData<Payload<Name>>
}
type TransientEventData = { [Name in TransientType]: TranscriptData<Payload<Name>> }

/**
 * `data` by the type of the event. A program can add a type of the service that is newer than this version:
 *
 *     declare module 'agent-session-sidecar' { interface EventData { 'agent.progress':
 *       TranscriptData<{ percent?: number }> } }
 */
export interface EventData extends StateEventData, TranscriptEventData, TransientEventData {}

/** A type of event that this version knows. */
export type KnownType = keyof EventData

/** `turn` and `stream.turn` of `stream.turn.ended`. */
type Parent<Type extends string> = Type extends `${infer First}.${infer Rest}`
  ? Rest extends `${string}.${string}`
    ? First | `${First}.${Parent<Rest>}`
    : First
  : never

/** The types for `on`: a known type, a family of them (`turn.*`, also for its future types), or everything (`*`). */
export type EventType = KnownType | `${Parent<KnownType>}.*` | '*'

export interface EventEnvelope<Type extends string, Data, SessionId extends string | null = string | null> {
  type: Type
  /** ISO 8601. */
  timestamp: string
  /** The same on every attempt: the idempotency key. */
  id: string
  session_id: SessionId
  data: Data
  /** `test`: a test fact of `session-sidecar trigger`. */
  delivery: { attempt: number; handler: string; test?: true }
  /** When each channel first reported the event, milliseconds. */
  seen: { stream?: number; webhook?: number; poll?: number }
}

type Envelope<Type extends KnownType> = Type extends keyof StateEventData
  ? EventEnvelope<Type, EventData[Type], string>
  : EventEnvelope<Type, EventData[Type]>

type EnvelopeOf<Type extends KnownType> = { [Each in Type]: Envelope<Each> }[Type]

/**
 * A string type that no literal matches: with plain `string`, `event.type === 'turn.settled'` would
 * not exclude this event. Editors show the text of the type.
 */
type UnlistedType = `${string} (a type that this version does not know)`

/** An event whose type this version does not know, for example one that the service added later. */
export type OtherEvent = EventEnvelope<
  UnlistedType,
  Partial<Omit<TranscriptData, 'session'>> & {
    session: Pick<SessionResource, 'title' | 'status'> | null
  } & Fields
>

/** An event for a handler, narrowed by its `type`. */
export type Event = EnvelopeOf<KnownType> | OtherEvent

/** State facts: results of reading a session and its turns, and outcomes of function calls. */
export type StateEvent = EnvelopeOf<keyof StateEventData>

/** Events of the session's stream. */
export type TranscriptEvent = EnvelopeOf<keyof TranscriptEventData | TransientType>

/** Narrows an event to one type without a comparison of `event.type`. */
export function isFact<Type extends KnownType>(event: Event, type: Type): event is EnvelopeOf<Type> {
  return event.type === type
}

/** The event that a handler of a type, a family or everything gets. Transient events go to handlers of their type only. */
export type EventOf<Type extends EventType> = Type extends KnownType
  ? EnvelopeOf<Type>
  : Type extends '*'
    ? EnvelopeOf<Exclude<KnownType, TransientType>> | OtherEvent
    : Type extends `${infer Prefix}.*`
      ? EnvelopeOf<Extract<Exclude<KnownType, TransientType>, `${Prefix}.${string}`>> | OtherEvent
      : never

/** The body of the request by which a tool is called over HTTP (src/sidecar/README.md, Function tools). */
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
  /** An earlier run of this call gave no answer, or a crash interrupted it: that run may have had its effect. */
  uncertain: boolean
  session: { title: string | null; metadata: Record<string, string> }
  [field: string]: unknown
}

/** If the function throws `DeadLetter`, the event is dead-lettered. After any other error it is retried. */
export type EventHandler<Type extends EventType> = (event: EventOf<Type>, context: HandlerContext) => unknown
