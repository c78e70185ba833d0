import {
  FINAL_CALL_STATES,
  type Call,
  type CallResult,
  type CallState,
  type CallStep,
} from '../../core/call.ts'
import { stateFactId, type Fact } from '../../core/fact.ts'
import { writeJson, type JsonObject } from '../../std/json.ts'
import type { SessionSummary } from '../../core/resource.ts'

/**
 * The steps of a call's ledger, each as what is written for it. Pure: the runner decides when, the store whether the
 * call still stands where the step starts from.
 */

/** `dueAt`: steady milliseconds; the engine hands the store what is left until then. */
export type Step = Omit<CallStep, 'set' | 'after'> & {
  set: CallStep['set'] & { dueAt?: number }
  facts?: Fact[]
}

/** Times: wall clock milliseconds. */
export function beginRun(call: Call, now: number, again: boolean): Step {
  return {
    callId: call.callId,
    from: again ? ['running'] : ['received'],
    set: {
      state: 'running',
      attempts: call.attempts + 1,
      startedAt: call.startedAt ?? now,
      uncertain: call.uncertain || again,
      deferred: false,
    },
  }
}

/** The run was written down but never began. */
export function unbeginRun(call: Call, dueAt: number): Step {
  return {
    callId: call.callId,
    from: ['running'],
    set: { state: 'received', attempts: call.attempts - 1, dueAt: Math.ceil(dueAt) },
  }
}

/** The run did not succeed; it is tried again from `dueAt` (steady milliseconds). `uncertain`: it may have had its effect. */
export function retryRun(
  call: Call,
  { error, uncertain }: { error: string; uncertain: boolean },
  dueAt: number,
): Step {
  return {
    callId: call.callId,
    from: ['running'],
    set: {
      state: 'received',
      error,
      uncertain: call.uncertain || uncertain,
      dueAt: Math.ceil(dueAt),
    },
  }
}

export function deferRun(call: Call, dueAt: number): Step {
  return { callId: call.callId, from: ['running'], set: { deferred: true, dueAt: Math.ceil(dueAt) } }
}

/** The result is fixed: this is what is posted, and nothing else ever. */
export function finish(
  call: Call,
  result: CallResult,
  now: number,
  error: string | null,
  dueAt: number,
  from: readonly CallState[] = ['received', 'running'],
): Step {
  return {
    callId: call.callId,
    from,
    set: { state: 'finished', result, finishedAt: now, error, dueAt: Math.ceil(dueAt), deferred: false },
  }
}

/** A posting is about to be made, or is to be made again from `dueAt` on. */
export function notePost(
  call: Call,
  set: { posts: number; unsure: boolean; dueAt: number; error?: string | null },
): Step {
  return { callId: call.callId, from: ['finished'], set: { ...set, dueAt: Math.ceil(set.dueAt) } }
}

/** The service refused the output: the fixed error is posted in its stead, once. */
export function replaceResult(call: Call, text: string, refusal: string, dueAt: number): Step {
  return {
    callId: call.callId,
    from: ['finished'],
    set: {
      result: { kind: 'error', text },
      outcome: 'refused',
      error: refusal,
      posts: 0,
      unsure: false,
      dueAt: Math.ceil(dueAt),
    },
  }
}

const TYPES = {
  answered: 'call.answered',
  not_delivered: 'call.not_delivered',
  failed: 'call.failed',
} as const

/** The call is closed, and the fact that says so goes out with it. */
export function close(
  call: Call,
  state: keyof typeof TYPES,
  outcome: string,
  session: SessionSummary | null,
  now: number,
  error: string | null = call.error,
): Step {
  const closed: Call = { ...call, state, outcome, error, endedAt: now }
  const type = TYPES[state]
  return {
    callId: call.callId,
    from: ['received', 'running', 'finished'].filter(
      (from) => !FINAL_CALL_STATES.includes(from as CallState),
    ) as CallState[],
    set: { state, outcome, error, endedAt: now, deferred: false },
    facts: [
      {
        id: stateFactId(type, call.callId),
        type,
        sessionId: call.sessionId,
        turnId: call.turnId,
        at: now,
        family: 'state',
        seq: null,
        body: writeJson({ call: callData(closed), session: session === null ? null : { ...session } }),
        seen: {},
        subject: null,
      },
    ],
  }
}

/** What a callback says of a call (README, Callbacks). The result itself is the model's, and is not repeated. */
function callData(call: Call): JsonObject {
  return {
    call_id: call.callId,
    name: call.name,
    turn_id: call.turnId,
    state: call.state,
    outcome: call.outcome,
    attempts: call.attempts,
    error: call.result?.kind === 'error' || call.state !== 'answered' ? call.error : null,
    answered_with: call.result?.kind ?? null,
    created_at: call.createdAt,
    expires_at: call.expiresAt,
    received_at: call.receivedAt,
    started_at: call.startedAt,
    finished_at: call.finishedAt,
    ended_at: call.endedAt,
  }
}
