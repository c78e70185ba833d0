import { Type, type TSchema } from 'typebox'
import { WEBHOOK_EVENTS } from './event.ts'
import { shape } from './operation.ts'
import { permissionRulesSchema } from './policy.ts'
import type { OpenDetails } from './profile/details.ts'
import { CODES } from './refusal.ts'
import { SESSION_STATUSES } from './session.ts'
import { SCOPES } from './token.ts'
import { toolReadSchema } from './tool.ts'

const {
  Object: object,
  String: string,
  Number: number,
  Boolean: boolean,
  Array: array,
  Literal: literal,
} = Type
const optional = Type.Optional

const ms = number({ description: 'Milliseconds since the epoch.' })

function orNull(type: string, description?: string): TSchema {
  return Type.Unsafe({ type: [type, 'null'], ...(description === undefined ? {} : { description }) })
}

function listOf(name: string, details: OpenDetails): TSchema {
  return object({
    object: literal('list'),
    data: array(shape(name)),
    has_more: boolean(),
    last_id:
      details.emptyLastId === null ? orNull('string') : string({ description: 'Empty on an empty page.' }),
  })
}

/** The common fields of a saved agent and its alias. */
const template = {
  id: string(),
  name: string(),
  tools: array(toolReadSchema),
  text: object({}),
  created_at: ms,
}

/** Every named shape of the description, as this profile sends it. */
export function shapesOf(details: OpenDetails): Record<string, TSchema> {
  const shapes: Record<string, TSchema> = {
    Error: object({
      error: object({
        code: Type.Enum([...CODES, details.auth.rejectedCode]),
        message: string(),
        request_id: string(),
      }),
    }),
    Service: object({ object: literal('service'), version: literal('v1') }),
    Health: object({
      object: literal('health'),
      status: literal('ok'),
      version: literal('v1'),
      scopes: array(Type.Enum([...SCOPES])),
      usable: boolean(),
      missing_scopes: array(string()),
    }),
    Deleted: object({ object: string(), id: string(), deleted: literal(true) }),
    Session: session(details),
    RequiredAction: object({
      type: Type.Enum(['function_call', 'approval', 'question']),
      turn_id: string(),
      call_id: string(),
      name: optional(string()),
      arguments: optional(Type.Unknown()),
      created_at: ms,
      expires_at: orNull('number'),
      ...details.action.shape,
    }),
    Turn: turn(details),
    Item: object({
      object: literal('item'),
      id: string(),
      session_id: string(),
      type: Type.Enum([...details.item.types]),
      created_at: ms,
      role: string(),
      content: string(),
      detail: object({ event: string({ description: 'The name of the stream event that this records.' }) }),
    }),
    Artifact: object({
      object: literal('artifact'),
      id: string(),
      session_id: string(),
      ...details.artifactShape,
    }),
    InputReply: object({ ...details.message.replyShape }),
    AnswerReply: object({
      outcome: Type.Enum(Object.values(details.answer.outcomes)),
      ...details.answer.replyShape,
    }),
    SessionTools: object({
      object: literal('session.tools'),
      session_id: string(),
      tools: array(toolReadSchema),
      text: orNull('object'),
    }),
    ModelConnector: object({
      object: literal('model_connector'),
      id: string(),
      [details.connectorName]: string(),
      default_model: string(),
      key_prefix: string(),
    }),
    ModelCredential: object({
      object: literal('model_credential'),
      id: string(),
      label: string(),
      model: string(),
    }),
    WebhookSubscription: object({
      object: literal('webhook.subscription'),
      id: string(),
      url: string(),
      events: array(Type.Enum([...WEBHOOK_EVENTS])),
      active: boolean(),
      secret: optional(string({ description: 'On creation only.' })),
    }),
    NewModelCredential: object({
      object: literal('model_credential'),
      id: string(),
      label: string(),
      model: string(),
      connector: string(),
      is_default: boolean(),
      last4: string(),
      verified: boolean(),
    }),
    Agent: object({
      object: literal('agent'),
      ...template,
      model: string(),
      model_credential_id: orNull('string', "Null: the organization's default."),
      instructions: string(),
    }),
    EnvironmentTemplate: object({ object: literal('environment_template'), ...template }),
    EnvironmentProfile: object({
      object: literal('environment_profile'),
      id: string(),
      name: string(),
      is_default: boolean(),
      variable_count: Type.Integer(),
    }),
    Fork: object({ ...details.forkShape, forked_from: string(), workspace_copied: boolean() }),
    WorkspaceFileList: object({
      object: literal('list'),
      data: array(
        object({
          object: literal('workspace_file'),
          path: string(),
          type: literal('file'),
          size_bytes: number(),
          readable: boolean(),
        }),
      ),
      state: Type.Enum(['ready', 'missing']),
      captured_at: orNull('number', 'Null: no snapshot was taken.'),
      truncated: boolean(),
    }),
    WorkspaceFileContent: object({
      object: literal('workspace_file.content'),
      path: string(),
      content: string(),
      encoding: Type.Enum(['utf8', 'base64']),
      captured_at: ms,
      truncated: boolean(),
    }),
    StreamFrame: frame(details),
    WebhookDelivery: delivery(details),
  }
  for (const name of [
    'Session',
    'Turn',
    'Item',
    'Artifact',
    'ModelConnector',
    'ModelCredential',
    'WebhookSubscription',
    'Agent',
    'EnvironmentProfile',
  ]) {
    shapes[`${name}List`] = listOf(name, details)
  }
  return shapes
}

function session(details: OpenDetails): TSchema {
  return object({
    object: literal('session'),
    id: string({ format: 'uuid' }),
    status: Type.Enum([...SESSION_STATUSES]),
    created_at: ms,
    updated_at: ms,
    title: string(),
    metadata: Type.Record(string(), string()),
    source: Type.Unsafe({ enum: ['api', 'console', 'cli', null] }),
    created_by_token: string(),
    agent: object({
      id: orNull('string'),
      model: orNull('string'),
      model_credential_id: orNull('string'),
      approval_mode: string(),
      instructions: string(),
      permission_rules: permissionRulesSchema,
      tools: array(toolReadSchema),
    }),
    environment: object({
      type: literal('sandbox'),
      state: Type.Enum([...new Set(Object.values(details.workspaceStates))]),
      workspace_directory: string(),
      repo: object({ full_name: orNull('string'), branch: orNull('string'), clone_error: orNull('string') }),
      ...(details.readsBackSeeds
        ? { files: array(object({ path: string() })), profiles: array(string()) }
        : {}),
    }),
    preview: object({ url: orNull('string'), port: orNull('integer'), published_url: orNull('string') }),
    required_actions: array(shape('RequiredAction')),
  })
}

function turn(details: OpenDetails): TSchema {
  const maybe = (schema: TSchema): TSchema =>
    details.omitsNulls ? optional(schema) : Type.Unsafe({ anyOf: [schema, { type: 'null' }] })
  return object({
    object: literal('turn'),
    id: string(),
    session_id: string(),
    status: Type.Enum(['working', 'completed', 'failed', details.stopped]),
    created_at: ms,
    started_at: ms,
    completed_at: maybe(ms),
    artifacts: Type.Unsafe({ enum: [null, 'pending', 'ready', 'partial', 'failed'] }),
    artifacts_skipped: array(object({ path: string(), reason: string() })),
    subagent_id: maybe(string()),
    error: maybe(details.turnErrorShape),
  })
}

function frame(details: OpenDetails): TSchema {
  const sample = details.frame({
    seq: 1,
    at: 0,
    type: 'turn.started',
    sessionId: '',
    turnId: '',
    payload: {},
  })
  const known = new Set(['type', 'internal_type', 'seq', 'payload'])
  const more = Object.keys(sample).filter((key) => !known.has(key))
  return object({
    type: string(),
    internal_type: string({ description: "The service's own name, for quoting." }),
    seq: orNull('integer', 'Null on a transient event.'),
    payload: Type.Record(string(), Type.Unknown()),
    ...Object.fromEntries(more.map((key) => [key, optional(Type.Unsafe({}))])),
  })
}

/** The envelope of a delivery; `data` names the object by its ids. */
function delivery(details: OpenDetails): TSchema {
  const { data: _ids, ...envelope } = details.webhook.envelope({
    id: '',
    type: 'turn.completed',
    at: 0,
    sessionId: '',
    turnId: '',
  })
  const fields = Object.entries(envelope).map(([name, value]): [string, TSchema] => [
    name,
    typeof value === 'number' ? ms : string(),
  ])
  return object({ ...Object.fromEntries(fields), data: Type.Record(string(), string()) })
}
