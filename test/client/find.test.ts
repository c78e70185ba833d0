import { describe, expect, it, test } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { discover } from '../../src/client/discovery/discovery.ts'
import type { OperationName } from '../../src/client/discovery/discovery.ts'
import type { RouteOverrides } from '../../src/client/discovery/route.ts'
import { answers, documentOf, fields, json, listOf, resource, takes } from '../support/service/shape.ts'

function findIn(operations: Record<string, object>, overrides: RouteOverrides = {}) {
  return discover(documentOf(operations), overrides)
}

/** Where `operation` is in a document of these operations. */
function placeIn(operation: OperationName, operations: Record<string, object>): string | null {
  const route = findIn(operations).routes[operation]
  return route.found ? `${route.method} ${route.path}` : null
}

/** Where it is, in whatever order the operations stand. */
function placesIn(operation: OperationName, operations: Record<string, object>): (string | null)[] {
  const entries = Object.entries(operations)
  const places = [entries, entries.toReversed()].map((order) => placeIn(operation, Object.fromEntries(order)))
  return [...new Set(places)]
}

test.each([
  ['answer', 'POST that takes call_id and output; set service.routes.answer_path'],
  ['sendMessage', 'POST of a message; set service.routes.message_path'],
  ['readTurn', 'GET of a single turn; set service.routes.turn_path'],
  ['sessionStream', 'event stream of one session; set service.routes.session_stream_path'],
  ['listArtifacts', 'list of the artifacts of a session'],
] as const)('%s, where it is not found, says what is missing and how to fix it', (operation, what) => {
  expect(discover(null).routes[operation]).toEqual({
    found: false,
    reason: `the service's document has no ${what}`,
    key: /service\.routes\.(\w+)/.exec(what)?.[1] ?? null,
  })
})

describe('the answer to a call', () => {
  const answer = takes('call_id', 'output')
  const surer = takes('call_id', 'output', 'error')

  it('has the session in its path, rather than not', () => {
    expect(
      placesIn('answer', { 'POST /v1/sessions/{id}/answers': answer, 'POST /v1/answers': answer }),
    ).toEqual(['POST /v1/sessions/{id}/answers'])
  })

  it('is the route that also accepts an error, wherever it is', () => {
    expect(
      placesIn('answer', { 'POST /v1/answers': surer, 'POST /v1/sessions/{id}/answers': answer }),
    ).toEqual(['POST /v1/answers'])
  })

  it('is the first of several equally good routes', () => {
    expect(placeIn('answer', { 'POST /v1/b': answer, 'POST /v1/a': answer })).toBe('POST /v1/b')
  })

  it.each<[string, object]>([
    ['PUT /v1/answers', answer],
    ['POST /v1/agents/{agent_id}/answers', answer],
    ['POST /v1/answers', takes('call_id')],
    ['POST /v1/answers', takes('output')],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('answer', { [place]: operation })).toBeNull()
  })

  it('at the path that is configured has the body that the document gives it there', () => {
    const schema = {
      ...fields('call_id', 'output'),
      properties: { ...fields('call_id', 'output').properties, kind: { const: 'function' } },
      required: ['kind'],
    }
    const overrides = { answer_path: '/v1/sessions/{session_id}/results/{call_id}' }
    const found = findIn(
      { 'POST /v1/sessions/{id}/results/{call}': { requestBody: json(schema) } },
      overrides,
    )
    expect(found.answerBody).toEqual({ call_id: '{{call_id}}', kind: 'function' })
    const route = { method: 'POST', path: overrides.answer_path, how: 'override' }
    expect(found.routes.answer).toMatchObject(route)
    const unlike = findIn(
      { 'PUT /v1/sessions/{id}/results/{call}': { requestBody: json(schema) } },
      overrides,
    )
    expect(unlike.answerBody).toEqual({ call_id: '{{call_id}}' })
  })
})

describe('a message', () => {
  const say = (type: string, text = 'text') => ({
    requestBody: json({ type: 'object', properties: { type: { const: type }, [text]: { type: 'string' } } }),
  })

  it('is what looks most like one', () => {
    expect(
      placesIn('sendMessage', {
        'POST /v1/sessions/{id}/input': say('message'),
        'POST /v1/sessions/{id}/words': say('message', 'words'),
      }),
    ).toEqual(['POST /v1/sessions/{id}/input'])
  })

  it.each<[string, object]>([
    ['PATCH /v1/sessions/{id}', say('message')],
    ['POST /v1/messages', say('message')],
    ['POST /v1/agents/{agent_id}/input', say('message')],
    ['POST /v1/sessions/{id}/input', say('approval')],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('sendMessage', { [place]: operation })).toBeNull()
  })

  it('has the body that is configured, at the path that is found', () => {
    const found = findIn(
      { 'POST /v1/sessions/{id}/input': say('message') },
      { message_body: '{"to":["{{text}}"]}' },
    )
    expect(found.messageBody).toEqual({ to: ['{{text}}'] })
    expect(found.routes.sendMessage).toMatchObject({ path: '/v1/sessions/{id}/input', how: 'document' })
  })

  it('has the body that the document gives it at the path that is configured', () => {
    const operations = {
      'POST /v1/sessions/{id}/say': say('message'),
      'POST /v1/sessions/{id}/input': say('chat'),
    }
    const found = findIn(operations, { message_path: '/v1/sessions/{session_id}/say' })
    expect(found.messageBody).toEqual({ type: 'message', text: '{{text}}' })
    expect(found.routes.sendMessage).toMatchObject({ method: 'POST', how: 'override' })
  })

  it('at a path without a body says that its shape is missing', () => {
    expect(findIn({}, { message_path: '/v1/sessions/{session_id}/say' }).routes.sendMessage).toEqual({
      found: false,
      reason:
        "the service's document has no shape for the body of a message; set service.routes.message_body",
      key: 'message_body',
    })
  })

  it.each(['{{text}}', '"{{text}}"', '["{{text}}"]', '{"text":"no place"}', '{"text":', 7, null])(
    'cannot have the body %j',
    (message_body) => {
      expect(() => findIn({}, { message_body })).toThrow(
        new OperatorError(
          'service.routes.message_body: must be a JSON object with {{text}} in one of its strings',
          2,
        ),
      )
    },
  )
})

describe('a single turn', () => {
  const turn = answers(resource('turn'))

  it('ends in the id of a turn rather than answering one, and belongs to a session rather than not', () => {
    expect(placesIn('readTurn', { 'GET /v1/turns/{id}': {}, 'GET /v1/runs/{id}': turn })).toEqual([
      'GET /v1/turns/{id}',
    ])
    expect(
      placesIn('readTurn', { 'GET /v1/sessions/{id}/turns/{id}': {}, 'GET /v1/turns/{id}': {} }),
    ).toEqual(['GET /v1/sessions/{id}/turns/{id}'])
    expect(
      placesIn('readTurn', { 'GET /v1/sessions/{id}/runs/{id}': turn, 'GET /v1/turns/{id}': {} }),
    ).toEqual(['GET /v1/sessions/{id}/runs/{id}'])
  })

  it.each<[string, object]>([
    ['POST /v1/turns/{id}', {}],
    ['GET /v1/turns', {}],
    ['GET /v1/turns/{id}/log', {}],
    ['GET /v1/agents/{id}/turns/{id}', {}],
    ['GET /v1/things/{id}/turns/{id}', {}],
    ['GET /v1/agents/{id}', turn],
    ['GET /v1/runs/{id}', {}],
    ['GET /v1/runs/{id}', answers(resource('run'))],
    ['GET /v1/runs/{id}', answers(resource('turn'), '404')],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('readTurn', { [place]: operation })).toBeNull()
  })

  it('may be configured, below its session or not', () => {
    for (const turn_path of ['/v1/sessions/{session_id}/runs/{turn_id}', '/v1/runs/{turn_id}'])
      expect(findIn({}, { turn_path }).routes.readTurn).toMatchObject({
        method: 'GET',
        path: turn_path,
        how: 'override',
      })
  })
})

describe('the stream of a session', () => {
  const stream = (type: string) => ({ responses: { 200: { content: { [type]: {} } } } })

  it('may be configured', () => {
    const session_stream_path = '/v1/sessions/{session_id}/live'
    expect(findIn({}, { session_stream_path }).routes.sessionStream).toMatchObject({
      method: 'GET',
      path: session_stream_path,
      how: 'override',
    })
  })

  it.each(['text/event-stream', 'Text/Event-Stream; charset=utf-8'])('answers %s', (type) => {
    expect(placeIn('sessionStream', { 'GET /v1/sessions/{id}/live': stream(type) })).not.toBeNull()
  })

  it.each<[string, object]>([
    ['GET /v1/events', stream('text/event-stream')],
    ['POST /v1/sessions/{id}/live', stream('text/event-stream')],
    ['GET /v1/sessions/{id}/turns/{id}/live', stream('text/event-stream')],
    ['GET /v1/sessions/{id}/live', stream('text/event-streams')],
    ['GET /v1/sessions/{id}/live', {}],
  ])('is not %s with %j', (place, operation) => {
    expect(placeIn('sessionStream', { [place]: operation })).toBeNull()
  })
})

describe('the artifacts of a session', () => {
  const some = answers(fields())
  const archive = { 'GET /v1/sessions/{id}/artifacts/archive': {} }

  it('are beside their archive, else where artifacts are answered, else where the path says so', () => {
    expect(
      placesIn('listArtifacts', {
        'GET /v1/sessions/{id}/artifacts': some,
        'GET /v1/sessions/{id}/published': answers(listOf('artifact')),
        'GET /v1/sessions/{id}/old-artifacts': some,
        ...archive,
      }),
    ).toEqual(['GET /v1/sessions/{id}/artifacts'])
    expect(
      placesIn('listArtifacts', {
        'GET /v1/sessions/{id}/published': answers(listOf('artifact')),
        'GET /v1/sessions/{id}/old-artifacts': some,
      }),
    ).toEqual(['GET /v1/sessions/{id}/published'])
    expect(placeIn('listArtifacts', { 'GET /v1/sessions/{id}/old-artifacts': some })).not.toBeNull()
  })

  it.each<[string, object]>([
    ['POST /v1/sessions/{id}/artifacts', some],
    ['GET /v1/artifacts', some],
    ['GET /v1/sessions/{id}/artifacts/{id}', some],
    ['GET /v1/sessions/{id}/artifacts', {}],
    ['GET /v1/sessions/{id}/published', answers(listOf('file'))],
    ['GET /v1/sessions/{id}/published', answers(listOf('artifact'), '410')],
  ])('are not %s with %j', (place, operation) => {
    expect(placeIn('listArtifacts', { [place]: operation })).toBeNull()
  })
})
