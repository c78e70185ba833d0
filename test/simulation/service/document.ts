import type { Details } from './details.ts'

const text = { type: 'string' }

/** The service's description of itself, with the details of one seed. */
export function documentOf(details: Details): string {
  const { absent } = details
  const key = { name: details.idempotencyHeader, in: 'header', description: 'idempotency', schema: text }
  const rateHeaders = {
    [details.rateHeaders.remaining]: { schema: { type: 'integer' }, description: 'what is left of the rate' },
    [details.rateHeaders.bucket]: { schema: text, description: 'the rate bucket' },
  }
  const reply = (schema: unknown) => ({
    200: {
      description: 'fine',
      headers: absent.has('rate headers') ? {} : rateHeaders,
      content: { 'application/json': { schema } },
    },
  })
  const json = (schema: unknown) => ({ content: { 'application/json': { schema } } })
  const post = (schema: unknown) => ({
    post: {
      parameters: absent.has('idempotency header') ? [] : [key],
      requestBody: json(schema),
      responses: reply({}),
    },
  })
  const get = (kind: string) => ({
    get: { responses: reply({ type: 'object', properties: { object: { const: kind } } }) },
  })
  const answer = {
    type: 'object',
    required: ['call_id'],
    properties: { call_id: text, output: text, error: text },
  }
  const flat = {
    type: 'object',
    required: ['type', 'text'],
    properties: { type: { enum: ['input.message', 'input.steer'] }, text },
  }
  const nested = {
    type: 'object',
    required: ['event'],
    properties: {
      event: {
        type: 'object',
        required: ['kind', 'content'],
        properties: { kind: { enum: ['message', 'steer'] }, content: text },
      },
    },
  }
  return JSON.stringify({
    openapi: '3.1.0',
    paths: {
      '/v1/health': get('health'),
      '/v1/sessions': get('list'),
      '/v1/sessions/{session_id}': get('session'),
      '/v1/sessions/{session_id}/turns': get('list'),
      '/v1/sessions/{session_id}/items': get('list'),
      '/v1/sessions/{session_id}/artifacts/archive': { get: { responses: {} } },
      '/v1/webhooks': { ...get('list'), ...post({ type: 'object', properties: { url: text } }) },
      '/v1/events': {
        get: { responses: { 200: { content: { 'text/event-stream': { schema: text } } } } },
      },
      ...(details.turnPath === null || absent.has('turn') ? {} : { [details.turnPath]: get('turn') }),
      ...(details.artifactsPath === null || absent.has('artifacts')
        ? {}
        : { [details.artifactsPath]: get('list') }),
      ...(absent.has('answer') ? {} : { [details.answerPath]: post(answer) }),
      ...(absent.has('message')
        ? {}
        : { [details.messagePath]: post(details.message === 'flat' ? flat : nested) }),
    },
  })
}
