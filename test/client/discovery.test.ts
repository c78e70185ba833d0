import { describe, expect, test } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { discover } from '../../src/client/discovery/discovery.ts'
import type { Discovery, OperationName } from '../../src/client/discovery/discovery.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'

function pathOf(found: Discovery, operation: OperationName): string | null {
  const route = found.routes[operation]
  return route.found ? `${route.method} ${route.path} (${route.how})` : null
}

describe('a plain document', () => {
  const found = discover(plainDocument)

  test('shows where the open operations are', () => {
    expect(pathOf(found, 'answer')).toBe('POST /v1/sessions/{session_id}/actions (document)')
    expect(pathOf(found, 'sendMessage')).toBe('POST /v1/sessions/{session_id}/input (document)')
    expect(pathOf(found, 'readTurn')).toBe('GET /v1/sessions/{session_id}/turns/{turn_id} (document)')
    expect(pathOf(found, 'sessionStream')).toBe('GET /v1/sessions/{session_id}/events (document)')
    expect(pathOf(found, 'listArtifacts')).toBe('GET /v1/sessions/{session_id}/artifacts (document)')
  })

  test('shows the bodies, a plain message and not a steering one', () => {
    expect(found.messageBody).toEqual({ type: 'input.message', text: '{{text}}' })
    expect(found.answerBody).toEqual({ call_id: '{{call_id}}' })
  })

  test('shows header names and scopes', () => {
    expect(found.idempotencyHeader).toEqual({ name: 'idempotency-key', how: 'document' })
    expect(found.rateHeaders).toEqual({
      limit: null,
      remaining: 'x-ratelimit-remaining',
      reset: null,
      bucket: 'x-ratelimit-bucket',
    })
    expect(found.routes.answer).toMatchObject({ scopes: ['tools:respond'] })
    expect(found.routes.health).toMatchObject({ how: 'document', scopes: null })
    expect(found.routes.listWebhooks).toMatchObject({ how: 'default', path: '/v1/webhooks' })
  })
})

describe('a document with references, choices and names of its own', () => {
  const found = discover(otherDocument)

  test('shows where the open operations are', () => {
    expect(pathOf(found, 'answer')).toBe('POST /v1/tool-results (document)')
    expect(pathOf(found, 'sendMessage')).toBe('POST /v1/sessions/{id}/messages (document)')
    expect(pathOf(found, 'readTurn')).toBe('GET /v1/runs/{run} (document)')
    expect(pathOf(found, 'sessionStream')).toBe('GET /v1/sessions/{id}/stream (document)')
    expect(pathOf(found, 'listArtifacts')).toBe('GET /v1/sessions/{id}/published (document)')
  })

  test('shows the bodies, with their required fields', () => {
    expect(found.messageBody).toEqual({
      event: { type: 'input.message', channel: 'user', content: '{{text}}' },
    })
    expect(found.answerBody).toEqual({
      call_id: '{{call_id}}',
      session_id: '{{session_id}}',
      kind: 'function',
    })
  })

  test('shows header names by their descriptions', () => {
    expect(found.idempotencyHeader).toEqual({ name: 'x-request-key', how: 'document' })
    expect(found.rateHeaders).toMatchObject({ remaining: 'x-budget-left', bucket: 'x-budget-bucket' })
    expect(found.routes.sendMessage).toMatchObject({ scopes: ['sessions:write'] })
  })
})

describe('without a document', () => {
  test('the paths that the interface names are used; the others are missing, with the fix', () => {
    const found = discover(null)
    expect(found.documented).toBe(false)
    expect(found.fault).toBeNull()
    expect(Object.keys(found.routes).flatMap((name) => pathOf(found, name as OperationName) ?? [])).toEqual([
      'GET /v1/health (default)',
      'GET /v1/sessions (default)',
      'GET /v1/sessions/{session_id} (default)',
      'GET /v1/sessions/{session_id}/turns (default)',
      'GET /v1/sessions/{session_id}/items (default)',
      'GET /v1/webhooks (default)',
      'POST /v1/webhooks (default)',
      'DELETE /v1/webhooks/{webhook_id} (default)',
      'GET /v1/events (default)',
    ])
    expect(found.routes.answer).toMatchObject({ found: false, key: 'answer_path' })
    expect(found.routes.sendMessage).toMatchObject({ found: false, key: 'message_path' })
    expect(found.idempotencyHeader).toBeNull()
  })

  test('the configuration alone suffices', () => {
    const found = discover(null, {
      answer_path: '/v1/sessions/{session_id}/answers/{call_id}',
      message_path: '/v1/sessions/{session_id}/say',
      message_body: '{"kind":"words","words":"{{text}}"}',
      turn_path: '/v1/turns/{turn_id}',
      session_stream_path: '/v1/sessions/{session_id}/live',
      idempotency_header: 'X-Once',
    })
    expect(pathOf(found, 'answer')).toBe('POST /v1/sessions/{session_id}/answers/{call_id} (override)')
    expect(found.answerBody).toEqual({ call_id: '{{call_id}}' })
    expect(pathOf(found, 'sendMessage')).toBe('POST /v1/sessions/{session_id}/say (override)')
    expect(found.messageBody).toEqual({ kind: 'words', words: '{{text}}' })
    expect(pathOf(found, 'readTurn')).toBe('GET /v1/turns/{turn_id} (override)')
    expect(pathOf(found, 'sessionStream')).toBe('GET /v1/sessions/{session_id}/live (override)')
    expect(found.idempotencyHeader).toEqual({ name: 'x-once', how: 'override' })
  })

  test('a message path without the shape of its body does not suffice', () => {
    const found = discover(null, { message_path: '/v1/sessions/{session_id}/say' })
    expect(found.routes.sendMessage).toMatchObject({ found: false, key: 'message_body' })
  })
})

describe('overrides', () => {
  test('win over the document and take the rest from it', () => {
    const found = discover(plainDocument, {
      message_path: '/v1/sessions/{id}/input',
      idempotency_header: 'X-Once',
    })
    expect(pathOf(found, 'sendMessage')).toBe('POST /v1/sessions/{id}/input (override)')
    expect(found.messageBody).toEqual({ type: 'input.message', text: '{{text}}' })
    expect(found.idempotencyHeader?.name).toBe('x-once')
  })

  test.each([
    ['answer_path', 'https://elsewhere.example/answers'],
    ['answer_path', '/v1/../../elsewhere'],
    ['answer_path', '/v1/answers?to=me'],
    ['answer_path', '/v1/things/{thing}'],
    ['message_path', 'v1/sessions/{session_id}/input'],
    ['turn_path', '/v1/turns/{turn_id}\r\nhost: elsewhere'],
    ['message_body', '{"text":"no place for it"}'],
    ['message_body', '{{text}}'],
    ['idempotency_header', 'Authorization'],
    ['idempotency_header', 'two words'],
  ])('%s of %j is refused with the key named', (key, value) => {
    expect(() => discover(plainDocument, { [key]: value })).toThrow(OperatorError)
    expect(() => discover(plainDocument, { [key]: value })).toThrow(`service.routes.${key}`)
  })
})
