import type { Open } from '../../std/open.ts'

/**
 * Resources of the service. Required fields were checked when the resource was read. Any other field may be absent or
 * null; its type comes from the interface of the service and is not checked. Unknown fields are passed on.
 */
export interface SessionResource {
  id: string
  /** `failed` is the outcome of the last turn; the session itself is not dead. */
  status: Open<'idle' | 'working' | 'requires_action' | 'failed'>
  /** Milliseconds on the service's clock, like all times of resources. */
  updated_at: number
  created_at?: number | null
  title?: string | null
  metadata?: Record<string, string> | null
  source?: Open<'api' | 'console' | 'cli'> | null
  created_by_token?: string | null
  agent?: SessionAgent | null
  environment?: SessionEnvironment | null
  preview?: SessionPreview | null
  /** All actions that the session waits for. */
  required_actions?: ActionResource[] | null
  [field: string]: unknown
}

export interface SessionAgent {
  id?: string | null
  model?: string | null
  model_credential_id?: string | null
  approval_mode?: Open<'read_only'> | null
  instructions?: string | null
  [field: string]: unknown
}

export interface SessionEnvironment {
  type?: Open<'sandbox'> | null
  state?: Open<'running' | 'unknown'> | null
  workspace_directory?: string | null
  repo?: SessionRepository | null
  [field: string]: unknown
}

export interface SessionRepository {
  full_name?: string | null
  /** The branch that the clone is on. */
  branch?: string | null
  clone_error?: string | null
  [field: string]: unknown
}

export interface SessionPreview {
  url?: string | null
  port?: number | null
  published_url?: string | null
  [field: string]: unknown
}

export interface TurnResource {
  id: string
  /**
   * The service has a fourth status, which its interface does not name: a turn that ends with it gives the event
   * `turn.ended`.
   */
  status: Open<'working' | 'completed' | 'failed'>
  session_id?: string | null
  created_at?: number | null
  started_at?: number | null
  completed_at?: number | null
  /** null while the turn runs, `pending` while files are collected; any other word is final. */
  artifacts?: Open<'pending' | 'ready' | 'partial' | 'failed'> | null
  artifacts_skipped?: SkippedArtifact[] | null
  subagent_id?: string | null
  /** The interface does not show its shape. */
  error?: unknown
  [field: string]: unknown
}

/** A file that was not published. */
export interface SkippedArtifact {
  path?: string
  reason?: string | null
  [field: string]: unknown
}

/** A published file. The interface shows only the id, which the client needs for the download. */
export interface ArtifactResource {
  id: string
  [field: string]: unknown
}

/** An entry of a session's `required_actions`. */
export interface ActionResource {
  type: Open<'function_call' | 'approval' | 'question'>
  call_id: string
  turn_id?: string | null
  /** The function, on a `function_call`. */
  name?: string | null
  /** The function's arguments, on a `function_call`. */
  arguments?: unknown
  created_at?: number | null
  expires_at?: number | null
  [field: string]: unknown
}

/** An entry of a session's transcript. */
export interface ItemResource {
  id: string
  type: Open<'message' | 'tool_call' | 'mcp_unavailable'>
  session_id?: string | null
  created_at?: number | null
  role?: Open<'user'> | null
  content?: string | null
  /** `event` is the name of the stream event that the item records. */
  detail?: { event?: string | null; [field: string]: unknown } | null
  [field: string]: unknown
}

/** What every fact says about its session. */
export interface SessionSummary {
  title: string | null
  metadata: Record<string, string>
  status: Open<'idle' | 'working' | 'requires_action' | 'failed'>
}

/** A function call as it is stored in the sidecar's ledger. Times are milliseconds. */
export interface CallSummary {
  call_id: string
  name: string
  turn_id: string | null
  state: 'answered' | 'not_delivered' | 'failed'
  /** The word of the service, or one of the sidecar's own. */
  outcome: Open<'not_delivered' | 'unknown' | 'unresolved' | 'refused' | 'expired' | 'cancelled'>
  /** Runs of the tool. */
  attempts: number
  /** For people: the error of the last failed run or post. */
  error: string | null
  /** The posted answer; null if there is none. */
  answered_with: 'output' | 'error' | null
  /** On the service's clock. */
  created_at: number | null
  expires_at: number | null
  /** On the sidecar's clock. */
  received_at: number
  started_at: number | null
  finished_at: number | null
  ended_at: number | null
}
