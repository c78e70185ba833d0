import type { WebhookEvent } from '../protocol/implications.ts'
import type { Reader } from './shape.ts'
import {
  anything,
  entry,
  flag,
  id,
  listOf,
  number,
  object,
  orNull,
  part,
  text,
  texts,
  word,
} from './shape.ts'

/** The resources of the service. Times are milliseconds on its clock (rule GEN-20). */
type Read<R> = R extends Reader<infer T> ? T : never

/**
 * Withheld secrets are named in `redacted`. Requests must not have this field, so an entry with it cannot be sent
 * back.
 */
export const readTool = entry(
  {
    type: word<
      | 'mcp'
      | 'function'
      | 'web_search'
      | 'web_fetch'
      | 'image_search'
      | 'browse'
      | 'browser_act'
      | 'screenshot'
    >(),
  },
  {
    name: text,
    url: text,
    command: text,
    args: listOf(text),
    allowed_tools: listOf(text),
    required: flag,
    redacted: listOf(text),
    description: text,
    parameters: object({}),
    timeout_seconds: number,
  },
)
export type Tool = Read<typeof readTool>

export const readPermissionRule = entry(
  { decision: word<'allow' | 'deny' | 'ask'>() },
  { tool: text, path: text, command: text, domain: text },
)
export type PermissionRule = Read<typeof readPermissionRule>

export const readAction = object({
  type: word<'function_call' | 'approval' | 'question'>(),
  call_id: id,
  turn_id: orNull(text),
  /** The function's name, on a `function_call`. */
  name: orNull(text),
  /** The function's arguments, on a `function_call`. */
  arguments: anything,
  created_at: orNull(number),
  expires_at: orNull(number),
})
export type RequiredAction = Read<typeof readAction>

export const readSession = object({
  id,
  /** `failed` is the outcome of the last turn; the session continues to exist. */
  status: word<'idle' | 'working' | 'requires_action' | 'failed'>(),
  created_at: orNull(number),
  updated_at: orNull(number),
  title: orNull(text),
  metadata: texts,
  source: orNull(word<'api' | 'console' | 'cli'>()),
  created_by_token: orNull(text),
  agent: part({
    id: orNull(text),
    model: orNull(text),
    model_credential_id: orNull(text),
    approval_mode: orNull(word<'read_only'>()),
    instructions: orNull(text),
    permission_rules: listOf(readPermissionRule),
    tools: listOf(readTool),
  }),
  environment: part({
    type: orNull(word<'sandbox'>()),
    state: orNull(word<'running' | 'unknown'>()),
    workspace_directory: orNull(text),
    repo: part({ full_name: orNull(text), branch: orNull(text), clone_error: orNull(text) }),
  }),
  preview: part({ url: orNull(text), port: orNull(number), published_url: orNull(text) }),
  /** All actions that the session waits for. */
  required_actions: listOf(readAction),
})
export type Session = Read<typeof readSession>

export const readTurn = object({
  id,
  session_id: orNull(text),
  /** There is a fourth status, which the interface does not name. */
  status: word<'working' | 'completed' | 'failed'>(),
  created_at: orNull(number),
  started_at: orNull(number),
  completed_at: orNull(number),
  /** null while the turn runs. `pending`: read again. */
  artifacts: orNull(word<'pending' | 'ready' | 'partial' | 'failed'>()),
  artifacts_skipped: listOf(object({ path: text, reason: orNull(text) })),
  subagent_id: orNull(text),
  /** Its shape is not part of the interface. */
  error: anything,
})
export type Turn = Read<typeof readTurn>

export const readItem = object({
  id,
  session_id: orNull(text),
  type: word<'message' | 'tool_call' | 'mcp_unavailable'>(),
  created_at: orNull(number),
  role: orNull(word<'user'>()),
  content: orNull(text),
  /** `event` is the name of the stream event that the item records; it distinguishes a tool call from its result. */
  detail: part({ event: orNull(text) }),
})
export type Item = Read<typeof readItem>

/** Fields beyond the id are not part of the interface. */
export const readArtifact = object({ id })
export type Artifact = Read<typeof readArtifact>

const readWorkspaceFile = object({
  path: text,
  type: orNull(word<'file'>()),
  size_bytes: orNull(number),
  readable: orNull(flag),
})
export type WorkspaceFile = Read<typeof readWorkspaceFile>

export const readFileListing = object({
  data: listOf(readWorkspaceFile),
  /** `missing`: no snapshot was taken yet, which is not the same as an empty workspace. */
  state: word<'ready' | 'missing'>(),
  captured_at: orNull(number),
  truncated: orNull(flag),
})
export type FileListing = Read<typeof readFileListing>

/** The answer to a refresh: the state of the listing, with or without the listing. */
export const readSnapshot = object({
  state: orNull(word<'ready' | 'missing'>()),
  captured_at: orNull(number),
})
export type Snapshot = Read<typeof readSnapshot>

export const readFileContent = object({
  path: text,
  content: text,
  encoding: word<'utf8' | 'base64'>(),
  captured_at: orNull(number),
  /** True only for text that was cut at the inline ceiling. */
  truncated: orNull(flag),
})
export type FileContent = Read<typeof readFileContent>

export const readWrittenFile = object({ path: text, size_bytes: number })
export type WrittenFile = Read<typeof readWrittenFile>

export const readSessionTools = object({
  session_id: orNull(text),
  tools: listOf(readTool),
  /** A request to the model, not enforced. */
  text: orNull(object({ verbosity: orNull(word<'low'>()), format: anything })),
})
export type SessionTools = Read<typeof readSessionTools>

export const readCredential = object({
  id,
  model: orNull(text),
  label: orNull(text),
  /** Only in the answer that creates the connection, like the fields below. */
  connector: orNull(text),
  is_default: orNull(flag),
  last4: orNull(text),
  verified: orNull(flag),
})
export type ModelCredential = Read<typeof readCredential>

export const readDisconnection = object({
  sessions_moved: number,
  /** null: these sessions have no model now. */
  moved_to: orNull(text),
})
export type Disconnection = Read<typeof readDisconnection>

export const readConnector = object({ id, default_model: orNull(text), key_prefix: orNull(text) })
export type ModelConnector = Read<typeof readConnector>

export const readWebhook = object({
  id,
  url: text,
  /** Empty: all. */
  events: listOf(word<WebhookEvent>()),
  /** Only in the answer to the creation. */
  secret: orNull(text),
  /** False once deliveries were given up. */
  active: orNull(flag),
})
export type WebhookSubscription = Read<typeof readWebhook>

const saved = {
  id,
  /** A slug of your own; no identifier. */
  name: orNull(text),
  tools: listOf(readTool),
  text: orNull(object({})),
  created_at: orNull(number),
}

export const readAgent = object({
  ...saved,
  model: orNull(text),
  /** null: the organization's default. */
  model_credential_id: orNull(text),
  instructions: orNull(text),
})
export type Agent = Read<typeof readAgent>

export const readTemplate = object(saved)
export type EnvironmentTemplate = Read<typeof readTemplate>

export const readProfile = object({
  id,
  name: orNull(text),
  is_default: orNull(flag),
  variable_count: orNull(number),
})
export type EnvironmentProfile = Read<typeof readProfile>

export const readHealth = object({
  status: orNull(word<'ok'>()),
  version: orNull(text),
  scopes:
    listOf(
      word<
        'sessions:read' | 'sessions:write' | 'tools:respond' | 'artifacts:read' | 'credentials:write' | 'cli'
      >(),
    ),
  usable: flag,
  missing_scopes: listOf(text),
})
export type Health = Read<typeof readHealth>
