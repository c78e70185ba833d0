import { describe, expect, it, test } from 'vitest'
import { discoverWhole } from '../../src/client/discovery/whole.ts'
import type { WholeName } from '../../src/client/discovery/whole.ts'
import { answers, documentOf, fields, listOf, resource, takes } from '../support/service/shape.ts'

/** Where `operation` is in a document of these operations. */
function placeIn(operation: WholeName, operations: Record<string, object>): string | null {
  const route = discoverWhole(documentOf(operations)).routes[operation]
  return route.found ? `${route.method} ${route.path}` : null
}

/** Where it is, in whatever order the operations stand. */
function placesIn(operation: WholeName, operations: Record<string, object>): (string | null)[] {
  const entries = Object.entries(operations)
  const places = [entries, entries.toReversed()].map((order) => placeIn(operation, Object.fromEntries(order)))
  return [...new Set(places)]
}

test.each([
  ['cancelTurn', 'POST that cancels a turn; set service.routes.cancel_path'],
  ['deleteArtifact', 'DELETE of an artifact; set service.routes.artifact_path'],
  ['saveAgent', 'POST that saves an agent; set service.routes.save_agent_path'],
  ['deleteAgent', 'DELETE of a saved agent; set service.routes.agent_path'],
  ['saveTemplate', 'POST that saves an environment template; set service.routes.save_template_path'],
  ['disconnect', 'operation that disconnects a model; set service.routes.disconnect_path'],
] as const)('%s, where it is not found, says what is missing and how to fix it', (operation, what) => {
  expect(discoverWhole(null).routes[operation]).toEqual({
    found: false,
    reason: `the service's document has no ${what}`,
    key: /service\.routes\.(\w+)/.exec(what)?.[1] ?? null,
  })
})

describe('what cancels a turn', () => {
  it('is about a turn rather than a session', () => {
    expect(
      placesIn('cancelTurn', {
        'POST /v1/turns/{turn_id}/cancel': {},
        'POST /v1/sessions/{session_id}/cancel': {},
      }),
    ).toEqual(['POST /v1/turns/{turn_id}/cancel'])
    expect(
      placesIn('cancelTurn', {
        'POST /v1/sessions/{session_id}/turns/{turn_id}/cancel': {},
        'POST /v1/sessions/{session_id}/stop': {},
      }),
    ).toEqual(['POST /v1/sessions/{session_id}/turns/{turn_id}/cancel'])
  })

  it.each(['cancel', 'interrupt', 'stop', 'abort', 'halt', 'Cancellation'])('may be called %s', (word) => {
    expect(placeIn('cancelTurn', { [`POST /v1/sessions/{id}/${word}`]: {} })).not.toBeNull()
  })

  it.each([
    'GET /v1/sessions/{id}/cancel',
    'POST /v1/cancel',
    'POST /v1/sessions/{id}/uncancel',
    'POST /v1/sessions/{id}/cancel/now',
    'POST /v1/webhooks/{id}/cancel',
  ])('is not %s', (place) => {
    expect(placeIn('cancelTurn', { [place]: {} })).toBeNull()
  })
})

describe('what deletes an artifact', () => {
  it('is below the list of artifacts rather than elsewhere', () => {
    expect(
      placesIn('deleteArtifact', {
        'DELETE /v1/sessions/{session_id}/artifacts/{artifact_id}': {},
        'DELETE /v1/artifacts/{artifact_id}': {},
        'GET /v1/sessions/{session_id}/artifacts': answers(listOf('artifact')),
      }),
    ).toEqual(['DELETE /v1/sessions/{session_id}/artifacts/{artifact_id}'])
  })

  it('is found without a list', () => {
    expect(placeIn('deleteArtifact', { 'DELETE /v1/sessions/{id}/artifacts/{id}': {} })).not.toBeNull()
    expect(placeIn('deleteArtifact', { 'DELETE /v1/artifacts/{id}': {} })).not.toBeNull()
  })

  it.each([
    'POST /v1/artifacts/{id}',
    'DELETE /v1/artifacts',
    'DELETE /v1/artifacts/{id}/content',
    'DELETE /v1/things/{thing}/artifacts/{id}',
    'DELETE /v1/sessions/{id}',
  ])('is not %s', (place) => {
    expect(placeIn('deleteArtifact', { [place]: {} })).toBeNull()
  })
})

describe('what saves and deletes an agent', () => {
  const body = takes('name', 'instructions')

  it('answers an agent, else has one in its path, else has the body of one', () => {
    expect(
      placesIn('saveAgent', {
        'POST /v1/clerks': { ...body, ...answers(resource('agent'), '201') },
        'POST /v1/agents': body,
        'POST /v1/others': body,
      }),
    ).toEqual(['POST /v1/clerks'])
    expect(placesIn('saveAgent', { 'POST /v1/agents': body, 'POST /v1/others': body })).toEqual([
      'POST /v1/agents',
    ])
    expect(placeIn('saveAgent', { 'POST /v1/others': body })).toBe('POST /v1/others')
  })

  it.each<[string, object]>([
    ['POST /v1/agents', takes('name')],
    ['POST /v1/agents', takes('instructions')],
    ['PUT /v1/agents', body],
    ['POST /v1/agents/{agent_id}', body],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('saveAgent', { [place]: operation })).toBeNull()
  })

  it('deletes by the id of the agent alone', () => {
    expect(placeIn('deleteAgent', { 'DELETE /v1/agents/{id}': {} })).toBe('DELETE /v1/agents/{id}')
    expect(placeIn('deleteAgent', { 'DELETE /v1/sessions/{session_id}/agents/{id}': {} })).toBeNull()
    expect(placeIn('deleteAgent', { 'DELETE /v1/sessions/{id}': {} })).toBeNull()
  })
})

describe('what saves an environment template', () => {
  const body = takes('name', 'tools')

  it('answers a template, else is among templates', () => {
    expect(
      placesIn('saveTemplate', {
        'POST /v1/kits': { ...body, ...answers(resource('environment_template')) },
        'POST /v1/environment-templates': body,
      }),
    ).toEqual(['POST /v1/kits'])
    expect(placeIn('saveTemplate', { 'POST /v1/environment-templates': body })).not.toBeNull()
  })

  it('is nothing else with the same body', () => {
    expect(placeIn('saveTemplate', { 'POST /v1/kits': body })).toBeNull()
    expect(placeIn('saveTemplate', { 'POST /v1/environment-templates': takes('name') })).toBeNull()
    expect(placeIn('saveTemplate', { 'POST /v1/environment-templates': takes('tools') })).toBeNull()
  })
})

describe('what disconnects a model', () => {
  const counting = answers(fields('sessions_moved'))

  it.each(['DELETE /v1/connections/{credential_id}', 'POST /v1/model-credentials/{id}/release'])(
    'answers with the number of moved sessions: %s',
    (place) => {
      expect(placesIn('disconnect', { [place]: counting, 'DELETE /v1/model-credentials/{id}': {} })).toEqual([
        place,
      ])
    },
  )

  it('is else the DELETE of a connection', () => {
    const place = 'DELETE /v1/model-credentials/{id}'
    expect(placeIn('disconnect', { [place]: answers(fields('id')) })).toBe(place)
  })

  it.each<[string, object]>([
    ['GET /v1/model-credentials/{id}', counting],
    ['POST /v1/model-credentials', counting],
    ['POST /v1/sessions/{id}/move', counting],
    ['POST /v1/model-credentials/{id}/check', answers(fields('id'))],
    ['DELETE /v1/model-credentials/{id}/cache', answers(fields('id'))],
    ['DELETE /v1/agents/{agent_id}/model-credentials/{id}', answers(fields('id'))],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('disconnect', { [place]: operation })).toBeNull()
  })
})

describe('the parameter that takes a snapshot first', () => {
  const snapshotOf = (parameters: object[], place = 'GET /v1/sessions/{id}/files') =>
    discoverWhole(
      documentOf({ 'GET /v1/sessions/{id}/other': { parameters: [query('live')] }, [place]: { parameters } }),
    ).snapshotParameter
  const query = (name: string, description = '') => ({ name, in: 'query', description })

  it.each([
    ['by its name', [query('depth'), query('refresh')], 'refresh'],
    ['by its description', [query('depth'), query('now', 'Takes a fresh snapshot.')], 'now'],
    [
      'as the only one of its own',
      [query('limit'), query('after'), query('order'), query('path'), query('now')],
      'now',
    ],
  ])('is found %s', (_, parameters, name) => {
    expect(snapshotOf(parameters)).toBe(name)
  })

  it.each([
    ['neither of two that say nothing', [query('depth'), query('now')]],
    ['what every list has', [query('limit', 'live'), query('path', 'fresh')]],
    ['a header', [{ name: 'X-Refresh', in: 'header' }]],
    ['nothing', []],
  ])('is not %s', (_, parameters) => {
    expect(snapshotOf(parameters)).toBeNull()
  })

  it('is a parameter of the listing alone', () => {
    expect(snapshotOf([query('refresh')], 'POST /v1/sessions/{id}/files')).toBeNull()
    expect(snapshotOf([query('refresh')], 'GET /v1/sessions/{id}/files/content')).toBeNull()
  })
})

describe('the field that takes the port of a preview', () => {
  const portIn = (place: string, ...names: string[]) =>
    discoverWhole(documentOf({ [place]: takes(...names) })).portField

  it('has the word in it', () => {
    expect(portIn('POST /v1/sessions/{id}/preview', 'name', 'servicePort')).toBe('servicePort')
    expect(portIn('POST /v1/sessions/{id}/preview', 'name')).toBeNull()
  })

  it.each([
    'PUT /v1/sessions/{id}/preview',
    'POST /v1/sessions/{id}/previews',
    'POST /v1/things/{id}/preview',
  ])('is not in %s', (place) => {
    expect(portIn(place, 'port')).toBeNull()
  })
})
