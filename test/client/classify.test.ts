import { describe, expect, test } from 'vitest'
import { NetworkFault } from '../../src/std/errors.ts'
import { ServiceError } from '../../src/core/errors.ts'
import {
  classify,
  refusedBeforeActing,
  retryAfterOf,
  unanswered,
  worthRepeating,
} from '../../src/client/transport/classify.ts'

const NOW = Date.parse('2026-11-21T05:00:00Z')

function refused(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): ReturnType<typeof classify> {
  return classify({ status, headers, body: typeof body === 'string' ? body : JSON.stringify(body) }, NOW)
}

describe('the code of an error', () => {
  test('is the code of the body, with its message and request id', () => {
    const error = refused(409, {
      error: { code: 'conflict', message: 'exists already', request_id: 'req_1' },
    })
    expect(error).toMatchObject({
      code: 'conflict',
      status: 409,
      message: 'exists already',
      requestId: 'req_1',
    })
  })

  test('distinguishes the two kinds of 429: one is repeated, the other never', () => {
    const limited = refused(429, { error: { code: 'rate_limit_exceeded' } }, { 'retry-after': '2' })
    const full = refused(429, { error: { code: 'project_limit_exceeded' } }, { 'retry-after': '2' })
    expect([worthRepeating(limited), refusedBeforeActing(limited), limited.retryAfter]).toEqual([
      true,
      true,
      2000,
    ])
    expect([worthRepeating(full), refusedBeforeActing(full)]).toEqual([false, false])
    expect(worthRepeating(refused(503, { error: { code: 'project_limit_exceeded' } }))).toBe(false)
  })

  test('an unavailable directory is not a rejected token', () => {
    const error = refused(503, { error: { code: 'directory_unavailable' } }, { 'retry-after': '7' })
    expect(error).toMatchObject({ unauthorized: false, retryAfter: 7000 })
    expect(refusedBeforeActing(error)).toBe(true)
  })

  // [fault auth-6]
  test.each([
    [502, '<html><h1>Bad Gateway</h1></html>', 'http_502'],
    [500, '', 'http_500'],
    [404, '{"error":"gone"}', 'http_404'],
    [400, '[{"error":{"code":"x"}}]', 'http_400'],
    [500, '{"error":{"code":7}}', 'http_500'],
    [503, `{"error":${'['.repeat(100_000)}`, 'http_503'],
    [302, '', 'http_302'],
    [401, '', 'unauthorized'],
  ])('without one in the body, %s with %j is %s', (status, body, code) => {
    expect(refused(status, body)).toMatchObject({ code, status })
  })

  // [fault auth-6]
  test('may be unknown: the status class decides', () => {
    expect(worthRepeating(refused(503, { error: { code: 'new_trouble' } }))).toBe(true)
    expect(worthRepeating(refused(422, { error: { code: 'new_refusal' } }))).toBe(false)
  })

  test('is cut when it is too long, and so is the message', () => {
    const error = refused(500, { error: { code: 'x'.repeat(10_000), message: 'y'.repeat(10_000) } })
    expect([error.code.length, error.message.length]).toEqual([500, 500])
  })

  test('the request id may come in a header', () => {
    for (const name of ['x-request-id', 'request-id'])
      expect(refused(502, '<html>', { [name]: 'req_9' }).requestId).toBe('req_9')
    expect(refused(502, '<html>').requestId).toBeNull()
  })

  test.each([
    [499, false],
    [500, true],
  ])('that is unknown, with status %i, is repeated: %s', (status, repeated) => {
    const error = refused(status, '')
    expect([worthRepeating(error), refusedBeforeActing(error)]).toEqual([repeated, false])
  })
})

test('a request that was not sent was not acted on, whatever error it gets', () => {
  const details = { code: 'http_503', status: 503, message: 'held' }
  expect(refusedBeforeActing(new ServiceError(details))).toBe(false)
  expect(refusedBeforeActing(new ServiceError({ ...details, unsent: true }))).toBe(true)
})

describe('an answer that did not come', () => {
  test.each([
    ['unreachable', 'unreachable', true],
    ['reset', 'no_reply', false],
    ['unreadable', 'no_reply', false],
    ['timeout', 'no_reply', false],
    ['aborted', 'no_reply', false],
  ] as const)('since the connection was %s is %s, and is worth repeating', (kind, code, before) => {
    const fault = new NetworkFault(kind, 'the line is dead')
    const error = unanswered(fault)
    expect(error).toMatchObject({ code, status: 0, message: 'the line is dead', cause: fault })
    expect([worthRepeating(error), refusedBeforeActing(error)]).toEqual([true, before])
  })
})

describe('Retry-After', () => {
  test.each([
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': ' 0 ' }, 0],
    [{ 'retry-after': 'Sat, 21 Nov 2026 05:00:09 GMT' }, 9000],
    // An hour behind us, so is its date: what counts is the difference.
    [{ 'retry-after': 'Sat, 21 Nov 2026 04:00:09 GMT', date: 'Sat, 21 Nov 2026 04:00:00 GMT' }, 9000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 04:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, null],
    [{ 'retry-after': '-5' }, null],
    // However wrong the service is, its sessions are read again tomorrow.
    [{ 'retry-after': '999999999' }, 86_400_000],
    [{}, null],
  ])('of %j is %s ms', (headers: Record<string, string>, expected) => {
    expect(retryAfterOf(headers, NOW)).toBe(expected)
  })
})
