/** The names of the interface, for the checks. */

/** Every endpoint that the interface specifies with method and path. */
export const ENDPOINTS = [
  'GET /v1',
  'GET /v1/openapi.json',
  'GET /v1/health',
  'POST /v1/sessions',
  'GET /v1/sessions',
  'GET /v1/sessions/{session_id}',
  'PATCH /v1/sessions/{session_id}',
  'DELETE /v1/sessions/{session_id}',
  'POST /v1/sessions/{session_id}/fork',
  'PUT /v1/sessions/{session_id}/tools',
  'GET /v1/sessions/{session_id}/tools',
  'POST /v1/sessions/{session_id}/preview',
  'DELETE /v1/sessions/{session_id}/preview',
  'GET /v1/sessions/{session_id}/turns',
  'GET /v1/sessions/{session_id}/items',
  'POST /v1/sessions/{session_id}/files',
  'POST /v1/sessions/{session_id}/files/refresh',
  'GET /v1/sessions/{session_id}/files',
  'GET /v1/sessions/{session_id}/files/content',
  'GET /v1/sessions/{session_id}/artifacts/archive',
  'GET /v1/sessions/{session_id}/artifacts/{artifact_id}/content',
  'GET /v1/events',
  'POST /v1/webhooks',
  'GET /v1/webhooks',
  'DELETE /v1/webhooks/{webhook_id}',
  'GET /v1/model-connectors',
  'GET /v1/model-credentials',
  'POST /v1/model-credentials',
  'GET /v1/agents/{agent_id}',
  'GET /v1/agents',
  'GET /v1/environment-templates/{template_id}',
  'GET /v1/environment-profiles',
] as const

/** Query parameters that the interface specifies, by endpoint. */
export const QUERIES: Readonly<Record<string, readonly string[]>> = {
  'GET /v1/sessions': ['limit', 'order', 'after', 'metadata', 'status'],
  'GET /v1/sessions/{session_id}/turns': ['limit', 'order', 'after'],
  'GET /v1/sessions/{session_id}/items': ['limit', 'order', 'after'],
  'GET /v1/sessions/{session_id}/files/content': ['path'],
  'GET /v1/events': ['last_event_id'],
  'GET /v1/webhooks': ['limit', 'after'],
  'GET /v1/model-credentials': ['limit', 'after'],
  'GET /v1/agents': ['limit', 'after'],
  'GET /v1/environment-profiles': ['limit', 'after'],
}

/** Every stream event that the interface names, each with the id of its rule. */
export const STREAM_EVENTS: readonly (readonly [string, string])[] = [
  'turn.started',
  'turn.ended',
  'agent.message',
  'agent.tool_call',
  'agent.tool_result',
  'agent.compaction',
  'agent.error',
  'agent.todos',
  'user.message',
  'message.queued',
  'message.dequeued',
  'file.changed',
  'approval.requested',
  'approval.resolved',
  'question.asked',
  'question.answered',
  'tool.required',
  'tool.resolved',
  'mcp.unavailable',
  'sandbox.created',
  'sandbox.paused',
  'sandbox.resumed',
  'preview.ready',
  'workspace.recovery_failed',
  'artifact.created',
  'agent.text',
  'agent.thinking',
].map((name, index) => [name, `EVT-${38 + index}`] as const)

/** Events that the interface calls transient; there may be more. */
export const TRANSIENT = ['agent.text', 'agent.thinking'] as const

/** Every webhook event, each with the id of its rule. */
export const WEBHOOK_EVENTS: readonly (readonly [string, string])[] = [
  'session.created',
  'session.action_required',
  'session.working',
  'session.idle',
  'session.failed',
  'turn.completed',
  'turn.failed',
].map((name, index) => [name, `WHS-${16 + index}`] as const)

/** The id of a session that does not exist. */
export const MISSING_ID = '00000000-0000-4000-8000-000000000000'
