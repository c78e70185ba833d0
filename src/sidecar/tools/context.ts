import type { Call } from '../../core/call.ts'
import type { Observer } from '../../core/observer.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { Session, SessionSummary } from '../../core/resource.ts'
import type { Store } from '../../core/store.ts'
import { TOOL_ERROR, type ToolCall, type ToolResult, type ToolSpec } from '../../core/tool.ts'
import type { Tracer, TraceSource } from '../../core/trace.ts'
import type { Hint } from '../../core/hint.ts'
import type { Step } from './ledger.ts'

/** What running and answering calls need of the rest of the house. */
export interface ToolPorts {
  service: Service
  store: Store
  /** Writes calls down. @returns the ids of those that were not known. */
  add: (calls: readonly Call[]) => Promise<ReadonlySet<string>>
  /** Writes a step of the ledger; false when the call has moved on. */
  step: (step: Step) => Promise<boolean>
  /** The same for what a run came to: tried again while the store refuses it, until nobody waits for the call (`over`). */
  keep: (step: Step, over: AbortSignal) => Promise<boolean>
  hint: (hints: readonly Hint[]) => Promise<void>
  /** Reads the session now. null: it is gone. */
  refresh: (sessionId: string) => Promise<Session | null>
  summaryOf: (sessionId: string) => Promise<SessionSummary | null>
  /** As far as it is at hand: for the log. */
  traceOf: (sessionId: string) => TraceSource
  tracer: Tracer
  observer: Observer
  clock: Clock
  random: Random
  log: Log
}

/** Runs a tool. Never throws; `signal` ends at the tool's timeout or the call's deadline. */
export type Runner = (call: ToolCall, signal: AbortSignal) => Promise<ToolResult>

export interface Tool {
  spec: ToolSpec
  run: Runner
}

/** What a result's tool has to say of its posting. */
export type AnswerPolicy = Pick<ToolSpec, 'error' | 'onNotDelivered'>

/** A tool that is not configured any more: what it did is posted all the same. */
export const REMOVED: AnswerPolicy = { error: TOOL_ERROR, onNotDelivered: 'resend' }

/** Whether the service still waits for a call. A session that is gone may be news to everybody. */
export async function isRequired(ports: ToolPorts, call: Call): Promise<'required' | 'resolved' | 'deleted'> {
  const session = await ports.refresh(call.sessionId)
  if (session === null) {
    const { sessionId } = call
    await ports.hint([{ sessionId, channel: 'poll', at: ports.clock.now(), scope: 'session', delay: 0 }])
    return 'deleted'
  }
  return session.actions.some(({ callId }) => callId === call.callId) ? 'required' : 'resolved'
}

/** Room for a run, held while its call is written down. */
export interface Place {
  /** The call as it is to be written. */
  running: Call
  /** It is written: its tool runs. */
  begin(): void
  /** It was not. */
  leave(): void
}
