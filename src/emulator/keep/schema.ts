import { Type, type TSchema } from 'typebox'
import { WEBHOOK_EVENTS } from '../event.ts'
import { permissionRulesSchema } from '../policy.ts'
import { SESSION_STATUSES } from '../session.ts'
import { SCOPES } from '../token.ts'
import { toolsSchema } from '../tool.ts'

const { Object: object, String: string, Number: number, Boolean: boolean, Array: array, Enum: oneOf } = Type

const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])
const optionalTools = Type.Optional(toolsSchema)
const text = orNull(Type.Record(string(), Type.Unknown()))
const maybeString = orNull(string())
const maybeNumber = orNull(number())

/**
 * The records of the file. Bytes are referenced by their hash; the resources document the fields.
 */
export const tokenSchema = object({
  id: string(),
  secret: string(),
  scopes: array(oneOf([...SCOPES])),
  createdAt: number(),
  expiresAt: maybeNumber,
  revoked: boolean(),
})

export const credentialSchema = object({
  id: string(),
  model: string(),
  label: string(),
  connector: string(),
  key: string(),
  baseUrl: Type.Optional(string()),
  isDefault: boolean(),
})

export const savedAgentSchema = object({
  id: string(),
  createdAt: number(),
  template: boolean(),
  name: string(),
  model: maybeString,
  credentialId: maybeString,
  instructions: string(),
  tools: optionalTools,
  text,
})

export const subscriptionSchema = object({
  id: string(),
  url: string(),
  events: array(string()),
  secret: string(),
  createdAt: number(),
  active: boolean(),
  deadInARow: number(),
})

const fileSchema = object({ path: string(), size: number(), bytes: maybeString })
const seedSchema = object({ path: string(), bytes: string() })
const filesSchema = array(fileSchema)

export const workspaceSchema = object({
  state: oneOf(['none', 'running', 'paused', 'gone']),
  usedMs: number(),
  since: number(),
  files: filesSchema,
  snapshot: orNull(object({ at: number(), files: filesSchema })),
  unpublished: array(string()),
})

export const sessionSchema = object({
  id: string(),
  status: oneOf([...SESSION_STATUSES]),
  createdAt: number(),
  updatedAt: number(),
  title: string(),
  metadata: Type.Record(string(), string()),
  source: orNull(oneOf(['api', 'console', 'cli'])),
  tokenId: string(),
  runtime: oneOf(['current', 'older']),
  agent: object({
    id: maybeString,
    model: maybeString,
    credentialId: maybeString,
    instructions: string(),
    approvalMode: string(),
    permissionRules: permissionRulesSchema,
    tools: optionalTools,
  }),
  builtInstructions: string(),
  text,
  repo: orNull(object({ fullName: string(), branch: maybeString, cloneError: maybeString })),
  files: array(seedSchema),
  profiles: array(string()),
  preview: object({ url: maybeString, port: maybeNumber, publishedUrl: maybeString }),
  actions: array(string()),
  queue: array(object({ id: string(), text: string(), at: number() })),
  /** The run that was going on; the turn is null before it is opened. */
  run: orNull(object({ turnId: maybeString, collectMs: maybeNumber })),
  bridgeReadyAt: number(),
  serversStarted: boolean(),
  workspace: workspaceSchema,
  artifacts: array(
    object({
      id: string(),
      sessionId: string(),
      turnId: string(),
      path: string(),
      contentType: string(),
      bytes: string(),
      createdAt: number(),
    }),
  ),
  deletedAt: maybeNumber,
})

export const turnSchema = object({
  id: string(),
  sessionId: string(),
  status: oneOf(['working', 'completed', 'failed', 'stopped']),
  createdAt: number(),
  startedAt: number(),
  completedAt: maybeNumber,
  artifacts: orNull(oneOf(['pending', 'ready', 'partial', 'failed'])),
  skipped: array(object({ path: string(), reason: string() })),
  subagentId: maybeString,
  outputs: filesSchema,
  error: orNull(object({ code: string(), message: string() })),
})

export const eventSchema = object({
  seq: number(),
  at: number(),
  type: string(),
  sessionId: string(),
  turnId: maybeString,
  payload: Type.Record(string(), Type.Unknown()),
})

const resolutionSchema = Type.Union([
  object({ kind: oneOf(['output', 'error', 'answered']), text: string() }),
  object({ kind: Type.Literal('approved'), approved: boolean() }),
  object({ kind: oneOf(['expired', 'lost', 'turn_over']) }),
])

export const actionSchema = object({
  type: oneOf(['function_call', 'approval', 'question']),
  sessionId: string(),
  turnId: string(),
  callId: string(),
  name: string(),
  arguments: Type.Unknown(),
  createdAt: number(),
  expiresAt: maybeNumber,
  resolution: orNull(resolutionSchema),
  resolvedAt: maybeNumber,
})

export const answerSchema = object({
  at: number(),
  call_id: string(),
  session_id: string(),
  output: maybeString,
  error: maybeString,
  outcome: string(),
  idempotency_key: maybeString,
  token_id: string(),
})

export const messageSchema = object({
  at: number(),
  id: string(),
  session_id: string(),
  text: string(),
  kind: oneOf(['message', 'steer']),
  queued: boolean(),
  idempotency_key: maybeString,
  token_id: string(),
})

export const probeSchema = object({
  at: number(),
  connector: string(),
  model: string(),
  accepted: boolean(),
})

export const deliverySchema = object({
  id: string(),
  subscriptionId: string(),
  event: oneOf([...WEBHOOK_EVENTS]),
  sessionId: string(),
  turnId: maybeString,
  body: string(),
  createdAt: number(),
  attempts: array(object({ at: number(), ms: number(), status: maybeNumber, error: maybeString })),
  status: oneOf(['pending', 'delivered', 'dead']),
  reason: maybeString,
})

/** The first answer to an idempotency value. */
export const replySchema = object({
  id: string(),
  at: number(),
  fingerprint: string(),
  answer: object({
    status: number(),
    body: Type.Optional(Type.Unknown()),
    headers: Type.Optional(Type.Record(string(), string())),
  }),
})
