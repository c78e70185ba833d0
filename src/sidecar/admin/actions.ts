import type { JsonObject } from '../../std/json.ts'

/**
 * The actions of a person or a program on a running sidecar. The composition root implements them;
 * the admin API checks the permission.
 */
export interface AdminActions {
  /** Makes a dead or delivered delivery pending again, or a pending one due now. Count 0: it is due already. */
  retryDelivery(id: string): Promise<{ count: number }>
  /** Makes dead deliveries pending again; with `dryRun` only counts them. `since`: our wall clock, milliseconds. */
  retryDeliveries(selection: RetryRequest): Promise<{ count: number }>
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
  handlers(): readonly HandlerReport[] | Promise<readonly HandlerReport[]>
}

/** The outcome of a test at a handler. */
export interface HandlerTest {
  id: string
  type: string
  /** Whether the handler's events select this type. */
  wanted: boolean
  outcome: 'delivered' | 'retry' | 'dead' | 'unreachable' | 'gone' | 'aborted'
  /** The status of its answer; null when there was none. */
  status: number | null
  error: string | null
  /** The first 1 KiB of its failed response. */
  answer: string | null
  /** Milliseconds. */
  ms: number
}

export interface RetryRequest {
  status: 'dead'
  handler?: string | undefined
  since?: number | undefined
  dryRun?: boolean
}

export interface ToolEntry {
  type: 'function'
  name: string
  [field: string]: unknown
}

export interface HandlerReport {
  name: string
  state: 'up' | 'down' | 'paused'
  /** Milliseconds on our wall clock; null when it never changed. */
  since: number | null
  /** A message for people, without secrets. */
  lastError: string | null
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
