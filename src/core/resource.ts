import type { JsonObject, Json } from '../std/json.ts'

/**
 * The fields of the service's resources that we rely on. `raw` is the unchanged object, unknown
 * fields included, for handlers. Times are milliseconds on the service's clock.
 */
export interface Session {
  id: string
  /** `idle`, `working`, `requires_action`, `failed`, or a word this version does not know. */
  status: string
  createdAt: number | null
  updatedAt: number
  title: string | null
  metadata: Record<string, string>
  /** Id of the token that created it; null: the service does not report it. */
  createdByToken: string | null
  actions: Action[]
  raw: JsonObject
}

export interface Turn {
  id: string
  sessionId: string
  /** `working`, `completed`, `failed`, or a word this version does not know. */
  status: string
  createdAt: number | null
  startedAt: number | null
  completedAt: number | null
  /** null while running; then `pending`, `ready`, `partial` or `failed`. */
  artifacts: string | null
  raw: JsonObject
}

/** An entry of a session's `required_actions`. */
export interface Action {
  /** `function_call`, `approval`, `question`, or a word this version does not know. */
  type: string
  callId: string
  turnId: string | null
  /** The function's name, on a function_call. */
  name: string | null
  arguments: Json | undefined
  createdAt: number | null
  expiresAt: number | null
  raw: JsonObject
}

export interface Item {
  id: string
  sessionId: string
  type: string
  /** `detail.event`: the name of the stream event that this item stores. */
  event: string | null
  createdAt: number | null
  raw: JsonObject
}

export interface WebhookSubscription {
  id: string
  url: string
  events: string[]
  active: boolean
  /** Shown once, in the answer to the creation. */
  secret: string | null
}

export interface Health {
  scopes: string[]
  usable: boolean
  missingScopes: string[]
}

export interface Page<T> {
  data: T[]
  hasMore: boolean
  lastId: string | null
}

/** The summary of a session in every callback. */
export interface SessionSummary {
  title: string | null
  metadata: Record<string, string>
  status: string
}

export function summaryOf({ title, metadata, status }: Session): SessionSummary {
  return { title, metadata, status }
}

/**
 * A turn is final when it no longer works: `completed`, `failed`, or any other word once
 * `completed_at` or `artifacts` is set, since `artifacts` is null while it runs (rule TRN-11).
 */
export function isFinal(turn: Pick<Turn, 'status' | 'completedAt' | 'artifacts'>): boolean {
  if (turn.status === 'working') return false
  if (turn.status === 'completed' || turn.status === 'failed') return true
  return turn.completedAt !== null || turn.artifacts !== null
}

const SETTLED = new Set(['ready', 'partial', 'failed'])

/** A turn is settled when it and its artifacts are final: it does not change any more. */
export function isSettled(turn: Pick<Turn, 'status' | 'completedAt' | 'artifacts'>): boolean {
  return isFinal(turn) && turn.artifacts !== null && SETTLED.has(turn.artifacts)
}
