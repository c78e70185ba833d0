import type { JsonObject } from '../../std/json.ts'

/**
 * What a person or a program may do to a running sidecar. The composition root implements it; the admin API alone
 * decides who may ask.
 */
export interface AdminActions {
  /** Makes one delivery pending again, whether dead or delivered, or due now. Count 0: it waits for nothing but its turn. */
  retryDelivery(id: string): Promise<{ count: number }>
  /** Makes dead deliveries pending again; with `dryRun` only counts them. `since`: our wall clock, milliseconds. */
  retryDeliveries(selection: RetryRequest): Promise<{ count: number }>
  /** Hands one handler past facts again. `seq` is a stream's digits, `at` our wall clock in milliseconds. */
  replay(request: { handler: string; from: { seq: string } | { at: number } }): Promise<{ count: number }>
  pauseHandler(name: string): Promise<void>
  resumeHandler(name: string): Promise<void>
  /** Hands a handler a made-up fact, through the real path, and waits for what it answers. */
  testHandler(name: string, request: { type: string; data: JsonObject }): Promise<HandlerTest>
  /**
   * Answers a call whose tool said 202.
   * @throws {ActionRefused} `not_found` when there is no such call, `conflict` when it waits for no answer.
   */
  answerCall(callId: string, answer: { output: string } | { error: true }): Promise<void>
  /** The `tools` array to declare on a session; each entry has a `name`. */
  tools(): readonly ToolEntry[]
  handlers(): readonly HandlerReport[] | Promise<readonly HandlerReport[]>
}

/** What a handler made of a test. */
export interface HandlerTest {
  id: string
  type: string
  /** Whether the handler asks for facts of this type. */
  wanted: boolean
  outcome: 'delivered' | 'retry' | 'dead' | 'unreachable' | 'gone' | 'aborted'
  /** Of its answer; null when there was none. */
  status: number | null
  error: string | null
  /** How its answer began, where it did not take the fact. */
  answer: string | null
  /** Milliseconds. */
  ms: number
}

export interface RetryRequest {
  status: 'dead'
  handler?: string
  since?: number
  dryRun?: boolean
}

export interface ToolEntry {
  name: string
  [field: string]: unknown
}

export interface HandlerReport {
  name: string
  state: 'up' | 'down' | 'paused'
  /** Milliseconds on our wall clock; null when it never changed. */
  since: number | null
  /** For people; without secrets. */
  lastError: string | null
}

/** An action that cannot be done as things are. The message is shown to the caller. */
export class ActionRefused extends Error {
  readonly code: 'not_found' | 'conflict' | 'invalid_request'

  constructor(code: 'not_found' | 'conflict' | 'invalid_request', message: string) {
    super(message)
    this.name = 'ActionRefused'
    this.code = code
  }
}
