import type { FileInput } from './upload.ts'
import type { PermissionRule, Tool } from './resource.ts'
import type { Open } from '../std/open.ts'
import type { Fields } from './shape.ts'

/** Fields of requests. The service refuses fields that it does not know (rule ERR-04). */

export interface CallOptions {
  /** Ends the call with a ServiceError of code `aborted`. */
  signal?: AbortSignal
  /** Milliseconds for the call with all waits and attempts. Default: the client's. */
  timeout?: number
}

export interface ActOptions extends CallOptions {
  /**
   * At most 255 characters; requests with the same value have one effect. By default one is generated for each call.
   */
  idempotencyKey?: string
}

export interface PageQuery {
  /** Entries of a page, 1 to 100. */
  limit?: number
  /** The `lastId` of the page before. */
  after?: string
}

export interface OrderedQuery extends PageQuery {
  /** By default the newest comes first. */
  order?: 'asc' | 'desc'
}

export interface SessionQuery extends OrderedQuery {
  status?: Open<'idle' | 'working' | 'requires_action' | 'failed'>
  /** One pair. Its name has no colon. */
  metadata?: Record<string, string>
}

export interface PermissionRuleInput {
  decision: 'allow' | 'deny' | 'ask'
  tool?: string
  path?: string
  command?: string
  domain?: string
}

export interface FunctionToolInput {
  type: 'function'
  name: string
  description?: string
  /** JSON Schema. */
  parameters?: object
  /** 1 to 7200. Omitted: no deadline. */
  timeout_seconds?: number
}

/** Exactly one of `url` and `command`. Fields for secrets are not part of the interface. */
export interface McpToolInput extends Fields {
  type: 'mcp'
  name: string
  url?: string
  command?: string
  args?: string[]
  allowed_tools?: string[]
  required?: boolean
}

export interface NetworkToolInput {
  type: 'web_search' | 'web_fetch' | 'image_search' | 'browse' | 'browser_act' | 'screenshot'
  name?: string
}

/** A server that was read may be sent again, unless it has `redacted`. */
export type ToolInput = FunctionToolInput | McpToolInput | NetworkToolInput | Tool

/** A request to the model, not enforced. */
export interface TextInput extends Fields {
  verbosity?: Open<'low'>
  format?: unknown
}

interface AgentSettings {
  instructions?: string
  approval_mode?: Open<'read_only'>
  permission_rules?: (PermissionRuleInput | PermissionRule)[]
}

export interface NewSession {
  agent?: AgentSettings & { id?: string; model?: string; model_credential_id?: string; tools?: ToolInput[] }
  title?: string
  metadata?: Record<string, string>
  environment?: {
    repo?: Fields
    files?: Iterable<FileInput> | AsyncIterable<FileInput>
    profiles?: unknown[]
  }
  /** The opening message: its text, or an object of the service. */
  input?: string | Fields
  text?: TextInput
}

export interface SessionChange {
  title?: string
  metadata?: Record<string, string>
  /** The service may accept a model and a connection here too: `agent` is sent unchanged. */
  agent?: AgentSettings & { model?: string; model_credential_id?: string }
}

export interface NewCredential {
  key: string
  /** A connector's id; may be omitted when only one vendor uses the key's prefix. */
  provider?: string
  model?: string
  base_url?: string
  label?: string
  is_default?: boolean
}

export interface NewWebhook {
  /** https. */
  url: string
  /** Omitted or empty: all. */
  events?: string[]
}

export interface NewTemplate {
  /** A slug; the same name again replaces the whole object. */
  name: string
  tools?: ToolInput[]
  text?: TextInput
}

export interface NewAgent extends NewTemplate {
  model?: string
  /** null: the organization's default. */
  model_credential_id?: string | null
  instructions?: string
}

/**
 * A string is the output unchanged; any other value is sent as JSON. The model reads `error`, so
 * never use an exception's message.
 */
export type CallAnswer = { output: unknown } | { error: string }
