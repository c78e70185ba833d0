import type { ToolCall, ToolResult } from '../../core/tool.ts'
import { traceIdOf, type Attributes, type Tracer, type TraceSource } from '../../core/trace.ts'
import type { ToolPorts } from './context.ts'

export function traceOf(call: Pick<ToolCall, 'sessionId' | 'session'>): TraceSource {
  return { given: call.session.metadata['traceparent'], key: call.sessionId }
}

/** What log lines say of a call, so that it is found in the trace and the other way round. */
export function namesOf(
  ports: Pick<ToolPorts, 'traceOf'>,
  { name, callId, sessionId }: { name: string; callId: string; sessionId: string },
): { tool: string; call: string; sessionId: string; trace_id: string } {
  return { tool: name, call: callId, sessionId, trace_id: traceIdOf(ports.traceOf(sessionId)) }
}

/** What the span of a run or an answer says of its call. */
export function attributesOf(call: { name: string; callId: string; sessionId: string }): Attributes {
  return {
    'session_sidecar.tool': call.name,
    'session_sidecar.call.id': call.callId,
    'session_sidecar.session.id': call.sessionId,
  }
}

/** Runs a tool inside its span. `run` gets the `traceparent` to send along. */
export async function runTraced(
  tracer: Tracer,
  call: ToolCall,
  run: (traceparent: () => string) => Promise<ToolResult>,
): Promise<ToolResult> {
  const attributes = { ...attributesOf(call), 'session_sidecar.attempt': call.attempt }
  const span = tracer.start('tool', traceOf(call), () => attributes)
  const result = await span.run(() => run(() => span.traceparent))
  span.end('error' in result ? result.error : null)
  return result
}
