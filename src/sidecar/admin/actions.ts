import type { HandlerStatus, Trial } from '../../core/handler.ts'
import type { RetrySelection } from '../../core/store.ts'
import type { JsonObject } from '../../std/json.ts'

/**
 * The actions of a person or a program on a running sidecar. The composition root implements them;
 * the admin API checks the permission.
 */
export interface AdminActions {
  /** Makes a dead or delivered delivery pending again, or a pending one due now. Count 0: it is due already. */
  retryDelivery(id: string): Promise<{ count: number }>
  /** Makes dead deliveries pending again; with `dryRun` only counts them. `since`: our wall clock, milliseconds. */
  retryDeliveries(selection: Omit<RetrySelection, 'id'>): Promise<{ count: number }>
  /** Sends past facts to one handler again. `seq`: the digits of a frame's seq. `at`: our wall clock, milliseconds. */
  replay(request: { handler: string; from: { seq: string } | { at: number } }): Promise<{ count: number }>
  pauseHandler(name: string): Promise<void>
  resumeHandler(name: string): Promise<void>
  /** Sends a test fact to a handler as a real one is sent, and waits for the answer. */
  testHandler(name: string, request: { type: string; data: JsonObject }): Promise<HandlerTest>
  /**
   * Answers a call whose tool answered 202.
   * @throws {ActionRefused} `not_found` when there is no such call, `conflict` when it waits for no answer.
   */
  answerCall(callId: string, answer: { output: string } | { error: true }): Promise<void>
  /** The `tools` array to declare on a session; each entry has a `name`. */
  tools(): readonly ToolEntry[]
  /** The names of the configured handlers. */
  handlerNames(): readonly string[]
  /** Their states, for all replicas. */
  handlers(): Promise<readonly HandlerStatus[]>
}

/** A test fact and its outcome at a handler. */
interface HandlerTest extends Trial {
  id: string
  type: string
  /** Whether the handler's events select this type. */
  wanted: boolean
}

export interface ToolEntry {
  type: 'function'
  name: string
  [field: string]: unknown
}

/** An action that the present state does not allow. The message is shown to the caller. */
export class ActionRefused extends Error {
  readonly code: 'not_found' | 'conflict' | 'invalid_request'

  constructor(code: 'not_found' | 'conflict' | 'invalid_request', message: string) {
    super(message)
    this.name = 'ActionRefused'
    this.code = code
  }
}
