import type { Call } from '../../core/call.ts'
import type { CallStep } from '../../core/call-machine.ts'
import type { Fact } from '../../core/fact.ts'
import type { Observer } from '../../core/observer.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { Session, SessionSummary } from '../../core/resource.ts'
import type { Store } from '../../core/store.ts'
import { TOOL_ERROR, type ToolCall, type ToolResult, type ToolSpec } from '../../core/tool.ts'
import { traceIdOf, type Span, type TraceSource } from '../../core/trace.ts'
import type { Hint } from '../../core/hint.ts'

/** A step of a call in the ledger, and what is committed with it. */
export interface Step extends CallStep {
  /** Committed only if the step is accepted. */
  facts?: readonly Fact[]
  hints?: readonly Hint[]
  /** Waits up to this long to share the commit of another write, milliseconds. */
  patience?: number
}

/** What running and answering calls need of other parts. */
export interface ToolPorts {
  service: Service
  store: Store
  /** Stores calls; `callsAdded` reports those that are new. */
  add: (calls: readonly Call[]) => Promise<void>
  /** Writes a step of the ledger; false when the call is in another state by now. */
  step: (step: Step) => Promise<boolean>
  /** The same for the result of a run: repeated while the store refuses it, until the call is over (`over`). */
  keep: (step: Step, over: AbortSignal) => Promise<boolean>
  hint: (hints: readonly Hint[]) => Promise<void>
  /** Reads the session of a call: does the service still wait for the call? */
  isRequired: (call: Call) => Promise<ActionState>
  sessions: {
    /** Reads the session now. null: it is gone. `signal` ends the read. */
    read(sessionId: string, signal?: AbortSignal): Promise<Session | null>
    /** As last read. */
    summary(sessionId: string): Promise<SessionSummary | null>
    /** The trace of a call, from what is in memory, without a read of the store: for log lines. */
    traceOf(call: Pick<Call, 'callId' | 'sessionId'>): TraceSource
  }
  /** Starts the span of an answer. If this process ran the tool, both are in one trace. */
  answerSpan: (call: Call) => Promise<Span>
  observer: Observer
  clock: Clock
  random: Random
  log: Log
}

/** Whether the service waits for a call; `deleted`: its session is gone. */
export type ActionState = 'required' | 'resolved' | 'deleted'

/** How far a call has come. */
export type Progress =
  /** It has ended. */
  | { kind: 'closed' }
  /** More work is due at `at`, steady milliseconds, with the call as it is stored now. */
  | { kind: 'due'; at: number; call: Call }
  /** The call has changed in another way, or another part decides about it. */
  | { kind: 'superseded' }

/** Runs a tool. Never throws; `signal` is aborted at the tool's timeout or the call's deadline. */
export type Runner = (call: ToolCall, signal: AbortSignal) => Promise<ToolResult>

export interface Tool {
  spec: ToolSpec
  run: Runner
}

/** How a tool wants its result to be posted. */
export type AnswerPolicy = Pick<ToolSpec, 'error' | 'onNotDelivered'>

/** For a call whose tool is no longer configured: its result is still posted. */
export const REMOVED: AnswerPolicy = { error: TOOL_ERROR, onNotDelivered: 'resend' }

/** The fields of a call in log lines, so that a line leads to the trace and back. */
export function namesOf(
  ports: Pick<ToolPorts, 'sessions'>,
  { name, callId, sessionId }: { name: string; callId: string; sessionId: string },
): { tool: string; call: string; sessionId: string; trace_id: string } {
  return {
    tool: name,
    call: callId,
    sessionId,
    trace_id: traceIdOf(ports.sessions.traceOf({ callId, sessionId })),
  }
}
