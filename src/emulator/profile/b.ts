import { Type } from 'typebox'
import type { OpenDetails } from './details.ts'

const MIB = 1024 * 1024
const content = Type.String({ minLength: 1 })
const closed = { additionalProperties: false }

const ITEM_TYPES: Readonly<Record<string, string>> = {
  'user.message': 'message',
  'agent.message': 'message',
  'agent.tool_call': 'tool_call',
  'agent.tool_result': 'tool_call',
  'agent.error': 'failure',
  'mcp.unavailable': 'mcp_unavailable',
  'agent.compaction': 'summary',
  'agent.todos': 'plan',
  'file.changed': 'file_change',
  'approval.requested': 'permission',
  'approval.resolved': 'permission',
  'question.asked': 'prompt',
  'question.answered': 'prompt',
  'preview.ready': 'service',
  'artifact.created': 'output',
}

/** `turn_id` as `turnId`. */
function camel(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** `turn.started` as `TurnStarted`. */
function pascal(type: string): string {
  return type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** The second profile: camel case, ids inside the payload, absent values left out, leniency rather than refusals. */
export const profileB: OpenDetails = {
  name: 'b',
  limits: {
    metadataCharacters: 256,
    streamsPerToken: 5,
    streamsPerOrganization: 20,
    retryMs: 2000,
    creationBurst: 60,
    creationPerSecond: 1,
    readsBurst: 600,
    readsPerSecond: 10,
    artifactBytes: 8 * MIB,
    artifactsTotalBytes: 32 * MIB,
    fileBytes: 2 * MIB,
    filesTotalBytes: 8 * MIB,
    files: 64,
    inlineCharacters: 131_072,
    listingBytes: 131_072,
  },
  paths: {
    message: '/v1/sessions/{session_id}/messages',
    answer: '/v1/sessions/{session_id}/actions/respond',
    turn: '/v1/turns/{turn_id}',
    cancel: '/v1/turns/{turn_id}/interrupt',
    sessionStream: '/v1/events/sessions/{session_id}',
    artifacts: '/v1/sessions/{session_id}/outputs',
    artifact: '/v1/outputs/{artifact_id}',
    saveAgent: '/v1/agent-definitions',
    deleteAgent: '/v1/agent-definitions/{agent_id}',
    saveTemplate: '/v1/template-definitions',
    deleteTemplate: '/v1/template-definitions/{template_id}',
  },
  operationId: (name) => `v1${pascal(name.slice(0, 1).toLowerCase() + name.slice(1))}Operation`,
  idempotency: { header: 'X-Request-Key', keptMs: 3_600_000, otherBody: 'replay', overlong: 'ignore' },
  budget: {
    names: { creation: 'create', reads: 'read' },
    chargesWrites: false,
    headers: (state) => ({
      'service-budget-name': profileB.budget.names[state.bucket],
      'service-budget-left': String(state.remaining),
      'service-budget-size': String(state.limit),
    }),
    described: {
      'service-budget-name': Type.String({ description: 'Names the rate bucket.' }),
      'service-budget-left': Type.Integer({
        description: 'The remaining budget of that bucket, in requests.',
      }),
      'service-budget-size': Type.Integer({ description: 'The whole budget of that bucket, in requests.' }),
    },
  },
  auth: {
    rejectedCode: 'invalid_token',
    namesScope: false,
    modelReadScope: 'credentials:write',
    mixesScopes: true,
  },
  queueFullStatus: 429,
  bridgeIncompatibleStatus: 422,
  sunset: '2027-12-31',
  message: {
    body: Type.Object({ type: Type.Enum(['user_message', 'input.steer']), content }, closed),
    opening: Type.Object({ type: Type.Enum(['user_message']), content }, closed),
    read: (body) => {
      const { type, content: said } = body as { type: string; content: string }
      return { steer: type === 'input.steer', text: said }
    },
    reply: ({ at, sessionId, position }) => ({
      object: 'accepted',
      session_id: sessionId,
      accepted_at: at,
      queued: position !== null,
      ...(position === null ? {} : { queue_position: position }),
    }),
    replyShape: {
      object: Type.Literal('accepted'),
      session_id: Type.String(),
      accepted_at: Type.Number(),
      queued: Type.Boolean(),
      queue_position: Type.Optional(Type.Integer({ minimum: 1 })),
    },
  },
  answer: {
    outcomes: {
      delivered: 'accepted',
      repeated: 'duplicate',
      expired: 'too_late',
      not_delivered: 'not_delivered',
    },
    reply: (outcome, action) => ({ object: 'action.response', outcome, turn_id: action.turnId }),
    replyShape: { object: Type.Literal('action.response'), turn_id: Type.String() },
  },
  stopped: 'interrupted',
  turnError: ({ code, message }) => ({ reason: code, detail: message }),
  turnErrorShape: Type.Object({ reason: Type.String(), detail: Type.String() }),
  deletedSession: () => undefined,
  action: {
    approval: (action) => ({ tool: { name: action.name, input: action.arguments } }),
    question: (action) => ({ prompt: action.arguments, options: [] }),
    shape: {
      tool: Type.Optional(Type.Object({ name: Type.String(), input: Type.Unknown() })),
      prompt: Type.Optional(Type.String()),
      options: Type.Optional(Type.Array(Type.String())),
    },
  },
  artifact: (artifact) => ({
    turn: artifact.turnId,
    filename: artifact.path,
    mime_type: artifact.contentType,
    bytes: artifact.bytes.length,
    published_at: artifact.createdAt,
  }),
  artifactShape: {
    turn: Type.String(),
    filename: Type.String(),
    mime_type: Type.String(),
    bytes: Type.Integer(),
    published_at: Type.Number(),
  },
  artifactsKeepType: false,
  item: {
    typeOf: (eventType) => ITEM_TYPES[eventType],
    types: [...new Set(Object.values(ITEM_TYPES))],
    roles: { agent: 'agent', tool: 'function', system: 'service' },
    detail: (event) => ({ ...event.payload, event: event.type, turnId: event.turnId }),
  },
  omitsNulls: true,
  emptyLastId: null,
  sortsSessionsBy: 'updatedAt',
  approvalModes: { automatic: 'autonomous', asking: 'confirm' },
  workspaceStates: { none: 'unknown', running: 'running', paused: 'asleep', gone: 'expired' },
  verbosities: ['low', 'normal', 'long'],
  textFormat: Type.String({ enum: ['plain', 'markdown', 'json'] }),
  patchesModel: false,
  templatesApart: true,
  connectorName: 'display_name',
  disconnect: { method: 'POST', path: '/v1/model-credentials/{credential_id}/disconnect' },
  fork: (session, stated) => ({ object: 'session.fork', ...stated, session_id: session['id'] }),
  forkShape: { object: Type.Literal('session.fork'), session_id: Type.String() },
  preview: {
    body: Type.Object({ service_port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })) }, closed),
    readPort: (body) => (body as { service_port?: number }).service_port,
    reply: ({ sessionId, url }) => ({ session_id: sessionId, public: url !== null, url }),
    replyShape: Type.Object({
      session_id: Type.String(),
      public: Type.Boolean(),
      url: Type.Unsafe<unknown>({ type: ['string', 'null'] }),
    }),
  },
  files: {
    entryTypes: ['inline', 'text'],
    snapshotQuery: 'snapshot',
    written: (entries) => entries,
    writtenShape: Type.Array(
      Type.Object({
        object: Type.Literal('workspace_file'),
        path: Type.String(),
        size_bytes: Type.Integer(),
      }),
    ),
    refreshed: ({ state, captured_at }) => ({ state, captured_at }),
    refreshedShape: Type.Object({ state: Type.Enum(['ready', 'missing']), captured_at: Type.Number() }),
  },
  repo: {
    body: Type.Object({ owner: Type.String({ minLength: 1 }), name: Type.String({ minLength: 1 }) }, closed),
    read: (body) => {
      const { owner, name } = body as { owner: string; name: string }
      return `${owner}/${name}`
    },
  },
  instructionsHold: 'workspace',
  readsBackSeeds: false,
  lostAnswer: 'hangs',
  personalApprovalCode: { code: null },
  spell: (open) => Object.fromEntries(Object.entries(open).map(([key, value]) => [camel(key), value])),
  internalType: (type) => `${pascal(type)}V2`,
  frame: (event) => ({
    type: event.type,
    internal_type: profileB.internalType(event.type),
    seq: event.seq,
    payload: {
      sessionId: event.sessionId,
      ...(event.turnId === null ? {} : { turnId: event.turnId }),
      ...event.payload,
    },
  }),
  stream: {
    transients: ['agent.text', 'agent.thinking', 'agent.progress', 'agent.status'],
    unplacedCursor: 'everything',
    stop: {
      name: 'stream.replay_limit',
      closes: false,
      data: (fromSeq) => ({
        type: 'stream.replay_limit',
        internal_type: 'ReplayLimitV2',
        seq: null,
        from_seq: fromSeq,
        payload: {},
      }),
    },
  },
  webhook: {
    secretPrefix: 'hook-secret-',
    deadBeforeInactive: 3,
    envelope: ({ id, type, at, sessionId, turnId }) => ({
      delivery: `whdel_${id}`,
      event: type,
      occurred_at: at,
      api_version: 'v1',
      data: type.startsWith('turn.')
        ? { object: 'turn', id: turnId, session_id: sessionId }
        : { object: 'session', id: sessionId },
    }),
  },
}
