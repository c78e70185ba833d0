import type { JsonObject } from '../std/json.ts'
import type { Lease } from './lease.ts'

/**
 * A function call that this sidecar accepted: `received → running → finished → answered |
 * not_delivered | failed`, as users see it; all stages and arrows are in call-machine.ts. Each
 * arrow is durable before its effect is visible outside.
 */
export type CallState = 'received' | 'running' | 'finished' | 'answered' | 'not_delivered' | 'failed'

export const FINAL_CALL_STATES: readonly CallState[] = ['answered', 'not_delivered', 'failed']

export interface Call {
  callId: string
  sessionId: string
  turnId: string | null
  name: string
  state: CallState
  /** The unchanged entry of `required_actions`. */
  action: JsonObject
  /** Runs of the tool so far. */
  attempts: number
  /** An earlier run may have had its effect: we crashed while it ran, or it gave no answer. */
  uncertain: boolean
  /** The tool answered 202: its answer comes through the admin API, until the deadline. */
  deferred: boolean
  /** The only answer that is ever posted; stored before the first post. */
  result: CallResult | null
  /**
   * Posts of the answer so far. After the service accepted one: reads of the session, or attempts to send the new
   * message.
   */
  posts: number
  /** The last request had no reply: before the sidecar sends it again, it reads whether the request arrived. */
  unsure: boolean
  /**
   * The outcome: the service's own word, or `unknown`, `unresolved`, `refused`, `expired`,
   * `cancelled`.
   */
  outcome: string | null
  /** For people: the error of the last failed run or post. Never sent to the model. */
  error: string | null
  /** Milliseconds on the service's clock. */
  createdAt: number | null
  expiresAt: number | null
  /** Milliseconds on our wall clock. */
  receivedAt: number
  startedAt: number | null
  finishedAt: number | null
  endedAt: number | null
}

/** A new call, due at once. `createdAt` and `expiresAt` are on the service's wall clock, the other times on ours. */
export function newCall(
  fields: Pick<
    Call,
    'callId' | 'sessionId' | 'turnId' | 'name' | 'action' | 'createdAt' | 'expiresAt' | 'receivedAt'
  >,
): Call {
  return {
    ...fields,
    state: 'received',
    attempts: 0,
    uncertain: false,
    deferred: false,
    result: null,
    posts: 0,
    unsure: false,
    outcome: null,
    error: null,
    startedAt: null,
    finishedAt: null,
    endedAt: null,
  }
}

/** `error` is posted as the answer's `error`, `output` as its `output`. */
export type CallResult = { kind: 'output' | 'error'; text: string }

/** A call that only its tool host may continue, until the tool host releases it. */
export interface ClaimedCall {
  call: Call
  lease: Lease
}

/** A call that a commit added. `lease`: it is claimed for the caller; null: it is in the queue. */
export interface AddedCall {
  callId: string
  lease: Lease | null
}

/** The number of further calls that the tool host can run; 0 or less: none. */
export interface CallRoom {
  /** Calls that need no run of a tool: a result must be posted, or the app answers later. */
  others: number
  /** Calls that wait for a run of the tool of that name, which may no longer be configured. */
  of(name: string): number
}
