import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { discoverWhole } from '../../src/client/discovery/whole.ts'
import type { WholeDiscovery, WholeName } from '../../src/client/discovery/whole.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'

function pathOf(found: WholeDiscovery, operation: WholeName): string | null {
  const route = found.routes[operation]
  return route.found ? `${route.method} ${route.path} (${route.how})` : null
}

const text = { type: 'string' }
const json = (schema: object) => ({ content: { 'application/json': { schema } } })
const fields = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, text])),
})
const ok = (schema: object = {}) => ({ responses: { 200: json(schema) } })

/** Everything that the interface leaves open, chosen unlike either profile of the emulator. */
const strange = {
  paths: {
    '/v1/sessions': {
      post: {
        requestBody: json({
          type: 'object',
          properties: { input: { type: 'object', properties: { words: text } } },
        }),
        ...ok(),
      },
    },
    '/v1/sessions/{id}/say': {
      post: {
        requestBody: json({
          oneOf: [
            {
              type: 'object',
              properties: { kind: { const: 'chat' }, words: text },
              required: ['kind', 'words'],
            },
            {
              type: 'object',
              properties: { kind: { const: 'steering' }, words: text },
              required: ['kind', 'words'],
            },
          ],
        }),
        ...ok(),
      },
    },
    '/v1/sessions/{id}/halt': { post: ok() },
    '/v1/sessions/{id}/files': {
      get: { parameters: [{ name: 'now', in: 'query', description: 'Capture first.' }], ...ok() },
    },
    '/v1/sessions/{id}/preview': { post: { requestBody: json(fields('name', 'servicePort')), ...ok() } },
    '/v1/sessions/{id}/artifacts/archive': { get: ok() },
    '/v1/sessions/{id}/published': { get: ok(fields()) },
    '/v1/published/{artifact}': { delete: ok() },
    '/v1/clerks': { post: { requestBody: json(fields('name', 'instructions', 'tools')), ...ok() } },
    '/v1/clerks/{agent}': { delete: ok() },
    '/v1/environment-templates': { post: { requestBody: json(fields('name', 'tools')), ...ok() } },
    '/v1/model-credentials/{id}': { delete: ok() },
    '/v1/model-credentials/{id}/release': { post: ok(fields('sessions_moved', 'moved_to')) },
  },
}

describe('the whole interface', () => {
  test('is found by shape, whatever it is called', () => {
    const found = discoverWhole(strange)
    expect(pathOf(found, 'cancelTurn')).toBe('POST /v1/sessions/{id}/halt (document)')
    expect(pathOf(found, 'deleteArtifact')).toBe('DELETE /v1/published/{artifact} (document)')
    expect(pathOf(found, 'saveAgent')).toBe('POST /v1/clerks (document)')
    expect(pathOf(found, 'deleteAgent')).toBe('DELETE /v1/clerks/{agent} (document)')
    expect(pathOf(found, 'saveTemplate')).toBe('POST /v1/environment-templates (document)')
    expect(pathOf(found, 'disconnect')).toBe('POST /v1/model-credentials/{id}/release (document)')
    expect(pathOf(found, 'readTools')).toBe('GET /v1/sessions/{session_id}/tools (default)')
    expect(found).toMatchObject({
      messageBody: { kind: 'chat', words: '{{text}}' },
      steerBody: { kind: 'steering', words: '{{text}}' },
      inputBody: { words: '{{text}}' },
      snapshotParameter: 'now',
      portField: 'servicePort',
    })
  })

  test('of other documents is what they show, with a reason for each missing route', () => {
    for (const document of [plainDocument, otherDocument]) {
      const found = discoverWhole(document)
      expect(found.steerBody).not.toBeNull()
      expect(found.routes.saveAgent).toMatchObject({ found: false, key: 'save_agent_path' })
    }
  })

  test('can be given, where it is not found or is found wrongly', () => {
    const found = discoverWhole(strange, {
      cancel_path: '/v1/turns/{turn_id}/end',
      artifacts_path: '/v1/sessions/{session_id}/results',
      artifact_path: '/v1/results/{artifact_id}',
      save_agent_path: '/v1/agents',
      agent_path: '/v1/agents/{agent_id}',
      save_template_path: '/v1/templates',
      disconnect_path: '/v1/model-credentials/{credential_id}',
      steer_body: { to: '{{text}}' },
      input_body: '{"said":"{{text}}"}',
      snapshot_parameter: 'fresh',
      port_field: 'at',
    })
    const given = [
      'cancelTurn',
      'listArtifacts',
      'deleteArtifact',
      'saveAgent',
      'deleteAgent',
      'saveTemplate',
    ] as const
    for (const name of given) expect(found.routes[name]).toMatchObject({ how: 'override' })
    expect(pathOf(found, 'disconnect')).toBe('DELETE /v1/model-credentials/{credential_id} (override)')
    expect(found).toMatchObject({
      steerBody: { to: '{{text}}' },
      inputBody: { said: '{{text}}' },
      snapshotParameter: 'fresh',
      portField: 'at',
    })
  })

  test.each([
    ['cancel_path', 'https://elsewhere.example'],
    ['artifact_path', '/v1/things/{thing_id}'],
    ['disconnect_path', '/v1/../x'],
    ['steer_body', '{"no":"place"}'],
  ])('is not given by %s of %j', (key, value) => {
    expect(() => discoverWhole(strange, { [key]: value })).toThrow(OperatorError)
  })

  test('is read from anything at all without a fault', () => {
    const look = (document: unknown) => discoverWhole(document).documented
    fc.assert(fc.property(fc.jsonValue(), (document) => !look(document)))
    fc.assert(
      fc.property(fc.jsonValue(), (operation) => {
        expect(typeof look({ paths: { '/v1/x/{agent}': { delete: operation } } })).toBe('boolean')
      }),
    )
  })
})
