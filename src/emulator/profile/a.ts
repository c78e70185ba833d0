import { Type } from 'typebox'
import type { OpenDetails } from './details.ts'

const MIB = 1024 * 1024
const text = Type.String({ minLength: 1 })
const closed = { additionalProperties: false }
const writtenFile = Type.Object({
  object: Type.Literal('workspace_file'),
  path: Type.String(),
  size_bytes: Type.Integer(),
})
const nullable = (type: string) => Type.Unsafe<unknown>({ type: [type, 'null'] })

const ITEM_TYPES: Readonly<Record<string, string>> = {
  'user.message': 'message',
  'agent.message': 'message',
  'agent.tool_call': 'tool_call',
  'agent.tool_result': 'tool_call',
  'agent.error': 'error',
  'mcp.unavailable': 'mcp_unavailable',
  'agent.compaction': 'compaction',
  'agent.todos': 'todos',
  'file.changed': 'file',
  'approval.requested': 'approval',
  'approval.resolved': 'approval',
  'question.asked': 'question',
  'question.answered': 'question',
  'preview.ready': 'preview',
  'artifact.created': 'artifact',
}

/** The first profile: snake case, ids at the top of a frame, absent values as null, refusals rather than leniency. */
export const profileA: OpenDetails = {
  name: 'a',
  limits: {
    metadataCharacters: 512,
    streamsPerToken: 10,
    streamsPerOrganization: 50,
    retryMs: 8000,
    creationBurst: 120,
    creationPerSecond: 2,
    readsBurst: 1200,
    readsPerSecond: 20,
    artifactBytes: 10 * MIB,
    artifactsTotalBytes: 50 * MIB,
    fileBytes: 4 * MIB,
    filesTotalBytes: 10 * MIB,
    files: 100,
    inlineCharacters: 262_144,
    listingBytes: 262_144,
  },
  paths: {
    message: '/v1/sessions/{session_id}/input',
    answer: '/v1/sessions/{session_id}/answers',
    turn: '/v1/sessions/{session_id}/turns/{turn_id}',
    cancel: '/v1/sessions/{session_id}/turns/{turn_id}/cancel',
    sessionStream: '/v1/sessions/{session_id}/events',
    artifacts: '/v1/sessions/{session_id}/artifacts',
    artifact: '/v1/sessions/{session_id}/artifacts/{artifact_id}',
    saveAgent: '/v1/agents',
    deleteAgent: '/v1/agents/{agent_id}',
  },
  operationId: (name) => name,
  idempotency: { header: 'Idempotency-Key', keptMs: 86_400_000, otherBody: 'conflict', overlong: 'refuse' },
  budget: {
    names: { creation: 'sessions.create', reads: 'reads' },
    chargesWrites: true,
    headers: (state) => ({
      'x-ratelimit-bucket': profileA.budget.names[state.bucket],
      'x-ratelimit-limit': String(state.limit),
      'x-ratelimit-remaining': String(state.remaining),
      'x-ratelimit-reset': String(state.resetSeconds),
    }),
    described: {
      'x-ratelimit-bucket': Type.String({ description: 'The rate bucket that the others describe.' }),
      'x-ratelimit-limit': Type.Integer({ description: 'What the bucket holds when full.' }),
      'x-ratelimit-remaining': Type.Integer({ description: 'Requests left in the bucket.' }),
      'x-ratelimit-reset': Type.Integer({ description: 'Seconds until the bucket is full.' }),
    },
  },
  auth: {
    rejectedCode: 'unauthenticated',
    namesScope: true,
    modelReadScope: 'sessions:read',
    mixesScopes: false,
  },
  queueFullStatus: 409,
  bridgeIncompatibleStatus: 409,
  sunset: null,
  message: {
    body: Type.Object({ type: Type.Enum(['input.message', 'input.steer']), text }, closed),
    opening: Type.Object({ type: Type.Optional(Type.Enum(['input.message'])), text }, closed),
    read: (body) => {
      const { type, text: said } = body as { type?: string; text: string }
      return { steer: type === 'input.steer', text: said }
    },
    reply: ({ id, at, position }) => ({
      object: 'input',
      id,
      created_at: at,
      queued: position !== null,
      position,
    }),
    replyShape: {
      object: Type.Literal('input'),
      id: Type.String(),
      created_at: Type.Number(),
      queued: Type.Boolean(),
      position: Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        description: 'Place in the queue, from 1.',
      }),
    },
  },
  answer: {
    outcomes: {
      delivered: 'delivered',
      repeated: 'already_answered',
      expired: 'expired',
      not_delivered: 'not_delivered',
    },
    reply: (outcome, action) => ({ object: 'answer', call_id: action.callId, outcome }),
    replyShape: { object: Type.Literal('answer'), call_id: Type.String() },
  },
  stopped: 'cancelled',
  turnError: ({ code, message }) => ({ code, message }),
  turnErrorShape: Type.Object({ code: Type.String(), message: Type.String() }),
  deletedSession: (id) => ({ object: 'session', id, deleted: true }),
  action: {
    approval: (action) => ({ name: action.name, arguments: action.arguments }),
    question: (action) => ({ question: action.arguments }),
    shape: { question: Type.Optional(Type.String()) },
  },
  artifact: (artifact) => ({
    turn_id: artifact.turnId,
    path: artifact.path,
    content_type: artifact.contentType,
    size_bytes: artifact.bytes.length,
    created_at: artifact.createdAt,
  }),
  artifactShape: {
    turn_id: Type.String(),
    path: Type.String(),
    content_type: Type.String(),
    size_bytes: Type.Integer(),
    created_at: Type.Number(),
  },
  artifactsKeepType: true,
  item: {
    typeOf: (eventType) => ITEM_TYPES[eventType],
    types: [...new Set(Object.values(ITEM_TYPES))],
    roles: { agent: 'assistant', tool: 'tool', system: 'system' },
    detail: (event) => ({ event: event.type, seq: event.seq, turn_id: event.turnId, payload: event.payload }),
  },
  omitsNulls: false,
  emptyLastId: '',
  sortsSessionsBy: 'createdAt',
  approvalModes: { automatic: 'auto', asking: 'ask' },
  workspaceStates: { none: 'unknown', running: 'running', paused: 'paused', gone: 'reclaimed' },
  verbosities: ['low', 'medium', 'high'],
  textFormat: Type.Object({ type: Type.Enum(['text', 'json']) }, closed),
  patchesModel: true,
  disconnect: { method: 'DELETE', path: '/v1/model-credentials/{credential_id}' },
  fork: (session, stated) => ({ ...session, ...stated }),
  forkShape: { object: Type.Literal('session'), id: Type.String() },
  preview: {
    body: Type.Object({ port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })) }, closed),
    readPort: (body) => (body as { port?: number }).port,
    reply: ({ port, url }) => ({ object: 'preview', port, published_url: url }),
    replyShape: Type.Object({
      object: Type.Literal('preview'),
      port: nullable('integer'),
      published_url: nullable('string'),
    }),
  },
  files: {
    snapshotQuery: 'refresh',
    written: (entries) => ({ object: 'list', data: entries, has_more: false, last_id: '' }),
    writtenShape: Type.Object({ object: Type.Literal('list'), data: Type.Array(writtenFile) }),
    refreshed: (listing) => listing,
    refreshedShape: Type.Ref('#/components/schemas/WorkspaceFileList'),
  },
  readsBackSeeds: true,
  lostAnswer: 'fails',
  personalApprovalCode: {},
  spell: (open) => ({ ...open }),
  internalType: (type) => `session.${type.replaceAll('.', '_')}`,
  frame: (event) => ({
    type: event.type,
    internal_type: profileA.internalType(event.type),
    seq: event.seq,
    session_id: event.sessionId,
    turn_id: event.turnId,
    created_at: event.at,
    payload: event.payload,
  }),
  stream: {
    transients: ['agent.text', 'agent.thinking', 'agent.progress'],
    unplacedCursor: 'nothing',
    stop: {
      name: 'replay.truncated',
      closes: true,
      data: (fromSeq) => ({
        type: 'replay.truncated',
        internal_type: 'stream.replay_truncated',
        seq: null,
        payload: { from_seq: fromSeq },
      }),
    },
  },
  webhook: {
    secretPrefix: 'whs_',
    deadBeforeInactive: 1,
    envelope: ({ id, type, at, sessionId, turnId }) => ({
      id: `evt_${id}`,
      object: 'event',
      type,
      created_at: at,
      data: type.startsWith('turn.') ? { session_id: sessionId, turn_id: turnId } : { session_id: sessionId },
    }),
  },
}
