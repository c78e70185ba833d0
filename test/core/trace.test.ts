import { expect, test } from 'vitest'
import { plainTracer, traceContext, traceIdOf } from '../../src/core/trace.ts'
import { seededRandom } from '../support/ports.ts'

const GIVEN = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00'

test('a given traceparent is continued: same trace, same flags, a new span', () => {
  const { traceparent } = plainTracer(seededRandom()).start(
    'callback',
    { given: GIVEN, key: 's' },
    () => ({}),
  )
  expect(traceparent).toMatch(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/)
  expect(traceparent).not.toBe(GIVEN)
})

test('without one the same key is always the same trace, and another key another', () => {
  const [one, again, other] = ['a', 'a', 'b'].map((key) => traceIdOf({ given: undefined, key }))
  expect(one).toMatch(/^[0-9a-f]{32}$/)
  expect(again).toBe(one)
  expect(other).not.toBe(one)
})

test.for([
  'nonsense',
  '',
  GIVEN.toUpperCase(),
  `${GIVEN}-extra`,
  '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
  '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
])('an invalid traceparent is ignored: %s', (given) => {
  expect(traceContext({ given, key: 's' })).toEqual(traceContext({ given: undefined, key: 's' }))
})
