import type { HandlerLog, RetrySpec } from './handler.ts'
import type { Json, JsonObject } from '../std/json.ts'
import type { SessionSummary } from './resource.ts'
import type { Attributes, TraceSource } from './trace.ts'

/** What the model is told where a tool says nothing else. */
export const TOOL_ERROR = 'The tool could not complete this request.'

/** How a function tool is run. Durations in milliseconds. */
export interface ToolSpec {
  name: string
  description: string
  /** JSON Schema of the arguments, as declared to the service. */
  parameters: JsonObject
  target: ToolTarget
  timeout: number
  /** For the whole call, from its creation on, as declared to the service; null: it may wait for ever. */
  deadline: number | null
  concurrency: number
  retry: RetrySpec
  /** What to do with a call that was running when we crashed: run it again with the same key, or post the error. */
  afterCrash: 'retry' | 'fail'
  /** The only error text that the model ever sees. */
  error: string
  onNotDelivered: 'resend' | 'report'
}

export type ToolTarget =
  | { kind: 'http'; url: string; secrets: string[] }
  | { kind: 'module'; run: ModuleTool }

/** What a tool is asked to do. */
export interface ToolCall {
  callId: string
  name: string
  arguments: Json | undefined
  sessionId: string
  turnId: string | null
  /** Milliseconds on the service's clock. */
  createdAt: number | null
  expiresAt: number | null
  /** From 1. */
  attempt: number
  /** True when an earlier run may have had its effect: a crash came between, or it gave no answer. */
  uncertain: boolean
  session: SessionSummary
}

/** `rejected`: the tool will never do this one, it is tried no more. Errors are for people, never for the model. */
export type ToolResult =
  | { kind: 'output'; output: string }
  | { kind: 'deferred' }
  | { kind: 'rejected'; error: string }
  /** `ran`: whether it had an effect, where it did not say itself that it failed. `retryAfter`: milliseconds. */
  | { kind: 'failed'; error: string; ran?: 'no' | 'unknown'; retryAfter?: number }

/** An in-process tool, arguments already checked. */
export type ModuleTool = (
  call: ToolCall,
  context: { signal: AbortSignal; log: HandlerLog },
) => Promise<ToolResult>

/** The trace that the spans of a call belong to. */
export function traceOf(call: Pick<ToolCall, 'sessionId' | 'session'>): TraceSource {
  return { given: call.session.metadata['traceparent'], key: call.sessionId }
}

/** What the span of a run or an answer says of its call. */
export function attributesOf(call: Pick<ToolCall, 'name' | 'callId' | 'sessionId'>): Attributes {
  return {
    'session_sidecar.tool': call.name,
    'session_sidecar.call.id': call.callId,
    'session_sidecar.session.id': call.sessionId,
  }
}
