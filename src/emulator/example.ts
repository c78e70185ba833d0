import { PERSISTED_EVENTS, WEBHOOK_EVENTS, type Payload } from './event.ts'
import type { OpenDetails } from './profile/details.ts'

const SESSION = '5f0c1c0e-6d1a-4a53-9d0e-3a1f6a3f2b11'
const TURN = 'turn_1f2e3d4c5b6a79880a1b2c3d'
const CALL = 'call_0a1b2c3d4e5f60718293a4b5'
const MESSAGE = 'msg_00112233445566778899aabb'
/** 2026-01-01T00:00:00Z */
const AT = 1_767_225_600_000

/** One payload for each event name. The agent may send further fields. */
const PAYLOADS: Readonly<Record<string, Payload>> = {
  'agent.message': { stated: { text: 'Your order is on its way.' } },
  'agent.text': { stated: { delta: 'Your order ' } },
  'agent.thinking': { stated: { delta: 'The order number is in the message.' } },
  'agent.progress': { open: { call_id: CALL, text: '$ ls -la' } },
  'agent.status': { open: { status: 'thinking' } },
  'agent.tool_call': {
    stated: { toolName: 'lookup_order', args: { order_id: '42' } },
    open: { call_id: CALL },
  },
  'agent.tool_result': {
    stated: { toolName: 'lookup_order' },
    open: { call_id: CALL, output: 'shipped', is_error: false },
  },
  'agent.compaction': { open: { messages: 120 } },
  'agent.error': { open: { code: 'agent_failed', message: 'out of disk' } },
  'agent.todos': { open: { todos: [{ text: 'Find the order', done: true }] } },
  'user.message': { stated: { text: 'Where is order 42?' }, open: { message_id: MESSAGE } },
  'message.queued': { open: { message_id: MESSAGE, text: 'And order 43?', position: 1 } },
  'message.dequeued': { open: { message_id: MESSAGE } },
  'file.changed': { open: { path: 'outputs/report.txt', size_bytes: 9 } },
  'approval.requested': { stated: { name: 'shell' }, open: { call_id: CALL, line: 'shell rm -rf build' } },
  'approval.resolved': {
    stated: {
      approved: false,
      toolCallId: CALL,
      name: 'shell',
      code: 'denied_read_only',
      message: 'This session is read-only, so shell is not allowed.',
    },
  },
  'question.asked': { open: { call_id: CALL, question: 'Which colour?' } },
  'question.answered': { open: { call_id: CALL, answer: 'blue' } },
  'tool.required': {
    stated: { name: 'lookup_order', arguments: { order_id: '42' } },
    open: { call_id: CALL, expires_at: AT + 30_000 },
  },
  'tool.resolved': { stated: { name: 'lookup_order' }, open: { call_id: CALL, resolution: 'output' } },
  'mcp.unavailable': { stated: { server: 'tickets', reason: 'connection refused' } },
  'preview.ready': { open: { port: 8080, url: 'http://preview.invalid:8080' } },
  'workspace.recovery_failed': { open: { reason: 'the paused workspace could not be brought back' } },
  'artifact.created': {
    open: {
      artifact_id: 'art_0a1b2c3d4e5f60718293a4b5',
      path: 'outputs/report.txt',
      size_bytes: 9,
      content_type: 'text/plain; charset=utf-8',
    },
  },
}

/** Events that belong to no turn. */
const WITHOUT_TURN = new Set([
  'user.message',
  'message.dequeued',
  'sandbox.created',
  'sandbox.paused',
  'sandbox.resumed',
])

/** One whole frame for each event name, by name, as OpenAPI examples. */
export function frameExamples(details: OpenDetails): Record<string, { value: unknown }> {
  const transients = new Set(details.stream.transients)
  const names = [...PERSISTED_EVENTS, ...transients]
  const examples = names.map((type, index): [string, { value: unknown }] => {
    const { stated, open } = PAYLOADS[type] ?? {}
    const payload = { ...stated, ...details.spell(open ?? {}) }
    const seq = transients.has(type) ? null : index + 1
    const turnId = WITHOUT_TURN.has(type) ? null : TURN
    return [type, { value: details.frame({ seq, at: AT, type, sessionId: SESSION, turnId, payload }) }]
  })
  return Object.fromEntries([
    ...examples,
    [details.stream.stop.name, { value: details.stream.stop.data(50_000) }],
  ])
}

/** One whole delivery for each webhook event name. */
export function webhookExamples(details: OpenDetails): Record<string, unknown> {
  return Object.fromEntries(
    WEBHOOK_EVENTS.map((type) => [
      type,
      details.webhook.envelope({
        id: '0a1b2c3d4e5f60718293a4b5',
        type,
        at: AT,
        sessionId: SESSION,
        turnId: TURN,
      }),
    ]),
  )
}
