import { describe, expect, it } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import { discover } from '../../src/client/discovery/discovery.ts'

type Named = string | [name: string, description: string]

const described = (named: Named) => {
  const [name, description] = typeof named === 'string' ? [named, undefined] : named
  return { name, description }
}

/** A document of POSTs, each with these header parameters. */
function taking(...operations: Named[][]) {
  const paths = operations.map((headers, at) => [
    `/v1/p${at}`,
    { post: { parameters: headers.map((named) => ({ ...described(named), in: 'header' })) } },
  ])
  return { paths: Object.fromEntries(paths) }
}

/** A document of GETs, each answered with these headers; numbers where a `#` leads their name. */
function answering(...operations: Named[][]) {
  const header = (named: Named) => {
    const { name, description } = described(named)
    const type = name.startsWith('#') ? 'integer' : 'string'
    return [name.replace('#', ''), { description, schema: { type } }]
  }
  const paths = operations.map((headers, at) => [
    `/v1/p${at}`,
    { get: { responses: { 200: { headers: Object.fromEntries(headers.map(header)) } } } },
  ])
  return { paths: Object.fromEntries(paths) }
}

const keyIn = (document: unknown) => discover(document).idempotencyHeader

describe('the header of idempotency', () => {
  it('is found by its name, which comes before any description, in lower case', () => {
    const document = taking(
      [['X-Other', 'the idempotency of it']],
      [['X-Other', 'the idempotency of it'], 'Idempotency-Key'],
    )
    expect(keyIn(document)).toEqual({ name: 'idempotency-key', how: 'document' })
  })

  it('is found by its description if no name matches', () => {
    expect(keyIn(taking(['X-Trace', ['X-Once', 'Makes it IDEMPOTENT.']]))).toEqual({
      name: 'x-once',
      how: 'document',
    })
  })

  it('is the header that most operations have, in any case of letters', () => {
    const document = taking(['Idempotency-A'], ['idempotency-b'], ['Idempotency-B'])
    expect(keyIn(document)?.name).toBe('idempotency-b')
    expect(keyIn(taking(['Idempotency-B'], ['Idempotency-A'], ['idempotency-b']))?.name).toBe('idempotency-b')
    expect(keyIn(taking(['Idempotency-A'], ['Idempotency-B']))?.name).toBe('idempotency-a')
  })

  it('is a header, and of a POST', () => {
    const parameters = [{ name: 'Idempotency-Key', in: 'query' }]
    expect(keyIn({ paths: { '/v1/x': { post: { parameters } } } })).toBeNull()
    const header = [{ name: 'Idempotency-Key', in: 'header' }]
    expect(keyIn({ paths: { '/v1/x': { get: { parameters: header } } } })).toBeNull()
    expect(keyIn(taking(['X-Trace']))).toBeNull()
  })

  it.each([
    'Authorization',
    'Proxy-Idempotency',
    'Cookie',
    'Host',
    'Content-Idempotency',
    'Accept-Idempotency',
    'Idempotency Key',
    'Idempotency:',
    `idempotency${'x'.repeat(60)}`,
  ])('is not %j, whatever header is configured', (name) => {
    expect(keyIn(taking([[name, 'idempotency']]))).toBeNull()
    expect(() => discover(null, { idempotency_header: name })).toThrow(
      new OperatorError(`service.routes.idempotency_header: "${name}" cannot be used as a header name`, 2),
    )
  })
})

it('the header of idempotency is what the configuration says, whatever the document has', () => {
  expect(discover(taking(['Idempotency-Key']), { idempotency_header: 'X-Once' }).idempotencyHeader).toEqual({
    name: 'x-once',
    how: 'override',
  })
})

describe('the headers of the rate budget', () => {
  const none = { limit: null, remaining: null, reset: null, bucket: null }

  it.each<[string, Named[], object]>([
    [
      'as most services name them',
      ['#X-RateLimit-Limit', '#X-RateLimit-Remaining', '#X-RateLimit-Reset', 'X-RateLimit-Bucket'],
      {
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
        bucket: 'x-ratelimit-bucket',
      },
    ],
    [
      'as the draft of the IETF names them',
      ['#RateLimit-Limit', '#RateLimit-Remaining', '#RateLimit-Reset', 'RateLimit-Policy'],
      {
        limit: 'ratelimit-limit',
        remaining: 'ratelimit-remaining',
        reset: 'ratelimit-reset',
        bucket: 'ratelimit-policy',
      },
    ],
    [
      'by their descriptions',
      [
        ['#X-A', 'The whole budget.'],
        ['#X-B', 'What is left of the budget.'],
        ['#X-C', 'When the budget is refilled.'],
        ['X-D', 'The name of the budget.'],
      ],
      { limit: 'x-a', remaining: 'x-b', reset: 'x-c', bucket: 'x-d' },
    ],
    [
      'by a name rather than a description',
      [['#X-Budget-Left', 'the limit']],
      { remaining: 'x-budget-left' },
    ],
    ['not a number for the name of a bucket', ['#X-Rate-Bucket'], {}],
    ['not what is about anything else', ['X-Remaining', ['X-Size', 'The size of the answer.']], {}],
    ['not Retry-After', [['Retry-After', 'When the rate limit is reset.']], {}],
    ['not what cannot be a header', [['X Rate Remaining', 'what remains']], {}],
    ['nothing by the words "rate limit" alone', ['X-RateLimit', 'X-Rate-Limit'], {}],
  ])('are found: %s', (_, headers, found) => {
    expect(discover(answering(headers)).rateHeaders).toEqual({ ...none, ...found })
  })

  it('are those that most answers have', () => {
    const document = answering(['#X-Rate-Left'], ['#X-Rate-Remaining'], ['#x-rate-remaining'])
    expect(discover(document).rateHeaders).toEqual({ ...none, remaining: 'x-rate-remaining' })
  })
})
