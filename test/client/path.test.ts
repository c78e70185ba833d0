import { assert, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parametersOf } from '../../src/client/discovery/parameters.ts'
import { fillPath } from '../../src/std/path.ts'
import { canFill, endsInParameter, isPlainPath, lastWord, samePath } from '../../src/client/discovery/path.ts'

describe('a path', () => {
  it.each([
    '/v1',
    '/v1/sessions/{session_id}/turns',
    '/v1/a.b/~c:d@e/{_x.y-z}',
    `/${'x'.repeat(511)}`,
    '/...a',
  ])('such as %s is plain', (path) => {
    expect(isPlainPath(path)).toBe(true)
  })

  it.each([
    '',
    '/',
    'v1',
    '//host',
    '/v1/',
    '/v1/..',
    '/v1/./x',
    '/.../x',
    '/v1?x',
    '/v1#x',
    '/v1/a b',
    '/v1/%2e%2e',
    '/v1/\\x',
    '/v1/{}',
    '/v1/{1}',
    '/v1/{a}{b}',
    '/v1/x{a}',
    '/v1\n',
    `/${'x'.repeat(512)}`,
  ])('such as %j is not plain', (path) => {
    expect(isPlainPath(path)).toBe(false)
  })

  it.each([
    ['/v1/health', []],
    ['/v1/x/{session_id}', ['session']],
    ['/v1/sessions/{id}', ['session']],
    ['/v1/sessions/{id}/turns/{turnId}', ['session', 'turn']],
    ['/v1/sessions/{session}/turns/{id}', ['session', 'turn']],
    ['/v1/sessions/{session_turn_id}', ['turn']],
    ['/v1/tools/{call_id}', ['call']],
    ['/v1/actions/{id}', ['call']],
    ['/v1/webhooks/{id}', ['webhook']],
    ['/v1/x/{artifact_id}', ['artifact']],
    ['/v1/model-credentials/{id}', ['credential']],
    ['/v1/environment-templates/{id}', ['template']],
    ['/v1/Agents/{id}', ['agent']],
    ['/v1/things/{id}/turns', [null]],
    ['/{session_id}', ['session']],
    ['{id}/sessions', [null]],
    ['/v1/{toolCallID}', ['call']],
    ['/v1/{turnids}/x/{TURN_ID}', [null, 'turn']],
    ['/v1/tool-calls/{id}', ['call']],
    ['/v1/returns/{return_id}', [null]],
    ['/v1/callbacks/{id}', [null]],
    ['/v1/transactions/{id}', [null]],
  ])('%s has the parameters %j: by their names, else by the word before', (path, names) => {
    expect(parametersOf(path)).toEqual(names)
  })

  it('can be filled when every parameter has its id', () => {
    const path = '/v1/sessions/{id}/turns/{id}'
    expect(canFill(path, ['turn', 'session', 'agent'])).toBe(true)
    expect(canFill(path, ['session'])).toBe(false)
    expect(canFill('/v1/things/{id}', ['session'])).toBe(false)
    expect(canFill('/v1/health', [])).toBe(true)
  })

  it('ends in a parameter or a word', () => {
    const ends = ['/v1/turns/{id}', '/v1/turns', '/{a}/b'].map((path) => [
      endsInParameter(path),
      lastWord(path),
    ])
    expect(ends).toEqual([
      [true, '{id}'],
      [false, 'turns'],
      [false, 'b'],
    ])
  })

  it('is filled with each id, and with given values for parameters that we do not know', () => {
    const ids = { session: 's/1', turn: 't?', call: 'c' }
    const fill = (path: string, otherwise?: string) =>
      fillPath({ path, parameters: parametersOf(path) }, ids, otherwise)
    expect(fill('/v1/sessions/{id}/turns/{turn_id}')).toBe('/v1/sessions/s%2F1/turns/t%3F')
    expect(fill('/v1/things/{id}/turns/{id}', 'else')).toBe('/v1/things/else/turns/t%3F')
    expect(fill('/v1/things/{id}/agents/{id}')).toBe('/v1/things//agents/')
  })

  it('stays within its segments, whatever the id', () => {
    const template = { path: '/v1/sessions/{id}/turns', parameters: ['session'] } as const
    const filled = (id: string) => fillPath(template, { session: id })
    expect(['.', '..', '...'].map(filled)).toEqual([
      '/v1/sessions/%252E/turns',
      '/v1/sessions/%252E%252E/turns',
      '/v1/sessions/%252E%252E%252E/turns',
    ])
    expect(filled('a..b')).toBe('/v1/sessions/a..b/turns')
    assert(
      property(string({ minLength: 1, unit: 'binary-ascii' }), (id) => {
        const { pathname } = new URL(`http://localhost${filled(id)}`)
        expect(pathname).toMatch(/^\/v1\/sessions\/[^/]+\/turns$/)
      }),
    )
    expect(filled('\ud800')).toBe('/v1/sessions/%EF%BF%BD/turns')
  })

  it('is the same as another when only the names of its parameters differ', () => {
    expect(samePath('/v1/sessions/{id}/turns/{t}', '/v1/sessions/{session_id}/turns/{turn_id}')).toBe(true)
    expect(samePath('/v1/sessions/{id}', '/v1/sessions/id')).toBe(false)
    expect(samePath('/v1/sessions/{id}', '/v1/sessions/{id}/turns')).toBe(false)
  })
})
