import type { Secrets } from '../std/signature.ts'
import type { HandlerLog, RetrySpec } from './handler.ts'
import type { Json, JsonObject } from '../std/json.ts'
import type { SessionSummary } from './resource.ts'
import type { Attributes, TraceSource } from './trace.ts'

/** The default error text for the model. */
export const TOOL_ERROR = 'The tool could not complete this request.'

/** The name of a tool that answers every function without a tool of its own; `{name}` in its url is the function. */
export const ANY_FUNCTION = '*'
/** `not.a.name` is no name of a tool: it may not be put into an address. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/

/** The entry of `tools` for a function: under its name, else under `*`. */
export function forFunction<T>(tools: ReadonlyMap<string, T>, name: string): T | undefined {
  return tools.get(name) ?? (TOOL_NAME.test(name) ? tools.get(ANY_FUNCTION) : undefined)
}

/** Whether one of the tools with these names answers a function. */
export function answers(names: ReadonlySet<string>, name: string): boolean {
  return names.has(name) || (TOOL_NAME.test(name) && names.has(ANY_FUNCTION))
}

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
  /**
   * The action for a call that was running during a crash: run it again with the same key, or post
   * the error.
   */
  afterCrash: 'retry' | 'fail'
  /** The only error text that the model ever sees. */
  error: string
  onNotDelivered: 'resend' | 'report'
}

export type ToolTarget = { kind: 'http'; url: string; secrets: Secrets } | { kind: 'module'; run: ModuleTool }

/** The input of one run of a tool. */
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
  /** True when an earlier run may have had its effect: the sidecar crashed, or the run gave no answer. */
  uncertain: boolean
  session: SessionSummary
}

/**
 * `rejected`: the tool will never accept this call; it is not retried. Errors are for people, never
 * for the model. `status`: of the HTTP answer, if there was one.
 */
export type ToolResult =
  | { kind: 'output'; output: string }
  | { kind: 'deferred'; status?: number }
  | { kind: 'rejected'; error: string; status?: number }
  /**
   * `ran`: absent if the tool itself reported the failure; otherwise whether it may have had an effect. `retryAfter`:
   * milliseconds.
   */
  | { kind: 'failed'; error: string; status?: number; ran?: 'no' | 'unknown'; retryAfter?: number }

/** An in-process tool, arguments already checked. */
export type ModuleTool = (
  call: ToolCall,
  context: { signal: AbortSignal; log: HandlerLog },
) => Promise<ToolResult>

/** The trace of a call's spans. */
export function traceOf(call: Pick<ToolCall, 'sessionId' | 'session'>): TraceSource {
  return { given: call.session.metadata['traceparent'], key: call.sessionId }
}

/** The attributes of the span of a run or of an answer. */
export function attributesOf(call: Pick<ToolCall, 'name' | 'callId' | 'sessionId'>): Attributes {
  return {
    'session_sidecar.tool': call.name,
    'session_sidecar.call.id': call.callId,
    'session_sidecar.session.id': call.sessionId,
  }
}
