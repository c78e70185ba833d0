import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { discover } from '../../src/client/discovery/discovery.ts'
import type { Discovery, OperationName } from '../../src/client/discovery/discovery.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'
import { repeats } from '../support/full.ts'

describe('a document that lies', () => {
  test('cannot lead requests to another host or path', () => {
    const body = plainDocument.paths['/v1/sessions/{session_id}/actions']
    for (const path of [
      '@elsewhere.example/{session_id}',
      '//elsewhere.example',
      '/v1/../x',
      '/v1/a b',
      '/v1/a?b=c',
    ]) {
      const found = discover({ paths: { '/v1': {}, [path]: body } })
      expect(found.routes.answer).toMatchObject({ found: false })
    }
  })

  test('cannot make us put the idempotency key in a header with another meaning', () => {
    const post = { parameters: [{ name: 'Authorization', in: 'header', description: 'idempotency' }] }
    expect(discover({ paths: { '/v1/sessions': { post } } }).idempotencyHeader).toBeNull()
  })

  test('has no route to answer if it requires a field that we do not know', () => {
    const schema = {
      type: 'object',
      required: ['call_id', 'output', 'mood'],
      properties: { call_id: { type: 'string' }, output: { type: 'string' }, mood: { type: 'string' } },
    }
    const post = { requestBody: { content: { 'application/json': { schema } } } }
    expect(discover({ paths: { '/v1/sessions/{session_id}/answers': { post } } }).routes.answer.found).toBe(
      false,
    )
  })

  test('that points at itself, or branches without end, costs little time', () => {
    const choice: Record<string, unknown> = { $ref: '#/components/schemas/Loop' }
    const schemas = {
      Loop: {
        oneOf: Array.from({ length: 60 }, () => choice),
        allOf: [choice, choice],
        properties: { a: choice },
      },
      Ring: { $ref: '#/components/schemas/Ring' },
    }
    const post = {
      requestBody: { content: { 'application/json': { schema: choice } } },
      parameters: [{ $ref: '#/components/schemas/Ring' }],
    }
    const paths = Object.fromEntries(
      Array.from({ length: 3000 }, (_, at) => [`/v1/sessions/{session_id}/p${at}`, { post }]),
    )
    const started = performance.now()
    const found = discover({ components: { schemas }, paths })
    // Each reference followed anew would take for ever.
    expect(performance.now() - started).toBeLessThan(10_000)
    expect(found.routes.answer.found).toBe(false)
  })
})

describe('any document at all', () => {
  const open: OperationName[] = ['answer', 'sendMessage', 'readTurn', 'listArtifacts', 'sessionStream']

  /** What no finding may be, whatever the document. */
  function faultsIn({ routes, messageBody, answerBody }: Discovery): string[] {
    const faults: string[] = []
    for (const operation of open) {
      const route = routes[operation]
      if (route.found && !/^\/v1\/[^?#\s\\]*$/.test(route.path))
        faults.push(`${operation} leads to ${route.path}`)
      if (!route.found && route.reason === '') faults.push(`${operation} is missing without a reason`)
    }
    const sendable = JSON.stringify(messageBody ?? null).includes('{{text}}')
    if (routes.sendMessage.found && !sendable) faults.push('a message without its text')
    if (routes.answer.found && answerBody?.['call_id'] !== '{{call_id}}')
      faults.push('an answer without its call')
    return faults
  }

  test('arbitrary JSON is read without a fault', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (document) => {
        expect(faultsIn(discover(document))).toEqual([])
      }),
    )
  })

  test('JSON in the outline of a document is read without a fault', () => {
    const word = fc.constantFrom(
      'type',
      'properties',
      'required',
      'enum',
      'const',
      'oneOf',
      'allOf',
      'items',
      '$ref',
      'object',
      'text',
      'call_id',
      'output',
      'schema',
      'content',
      'application/json',
      '__proto__',
      'constructor',
      'default',
    )
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('string', 'object', 'input.message', '#/paths', '#/paths/~1v1', '', null, 7),
        fc.array(tie('node'), { maxLength: 4 }),
        fc.dictionary(word, tie('node'), { maxKeys: 5 }),
      ),
    })).node
    const operation = fc.record({ parameters: value, requestBody: value, responses: value, security: value })
    const item = fc.dictionary(fc.constantFrom('get', 'post', 'delete', 'parameters'), operation)
    const path = fc.constantFrom(
      '/v1/sessions/{session_id}/input',
      '/v1/turns/{turn_id}',
      '/v1/x',
      '/v1/../y',
      'z',
    )
    fc.assert(
      fc.property(fc.dictionary(path, item), value, (paths, components) => {
        expect(faultsIn(discover({ paths, components }))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  test('a real document with one part replaced or gone is read without a fault', () => {
    const whole = [plainDocument, otherDocument]
    fc.assert(
      fc.property(
        fc.constantFrom(...whole),
        fc.nat(),
        fc.option(fc.jsonValue({ maxDepth: 3 })),
        (one, at, put) => {
          const document: unknown = structuredClone(one)
          const places = placesIn(document)
          const place = places[at % places.length]
          if (place !== undefined) {
            if (put === null) delete place.of[place.key]
            else place.of[place.key] = put
          }
          expect(faultsIn(discover(document))).toEqual([])
        },
      ),
      { numRuns: repeats(1000) },
    )
  })
})

interface Place {
  of: Record<string, unknown>
  key: string
}

function placesIn(node: unknown): Place[] {
  if (typeof node !== 'object' || node === null) return []
  const of = node as Record<string, unknown>
  return Object.keys(of).flatMap((key) => [{ of, key }, ...placesIn(of[key])])
}
