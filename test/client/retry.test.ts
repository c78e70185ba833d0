import { describe, expect, onTestFinished, test } from 'vitest'
import { isParticular, type ServiceError } from '../../src/core/errors.ts'
import { faultOf, refusal, routes, startBench } from '../support/service/client.ts'
import { plainDocument } from '../support/service/documents.ts'
import { until } from '../support/service/server.ts'
import type { Answerer, Said } from '../support/service/server.ts'

const ANSWER = '/v1/sessions/s1/actions'
const health = { body: { scopes: [], usable: true } }
const withoutKey = JSON.parse(
  JSON.stringify(plainDocument).replaceAll('Idempotency-Key', 'X-Other'),
) as unknown

/** Says one after the other, then the last for ever. */
function inTurn(...sayings: (Said | 'reset')[]): Answerer {
  let at = 0
  return (_asked, response) => {
    const said = sayings[Math.min(at++, sayings.length - 1)]
    if (said !== 'reset') return said ?? {}
    response.destroy()
    return null
  }
}

const html = { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>Bad Gateway</html>' }

describe('a read', () => {
  test.each([
    ['a 502 of a proxy', html, 'http_502'],
    ['an internal error', refusal(500, 'internal_error'), 'internal_error'],
    ['a reset', 'reset', 'no_reply'],
    ['an unknown 5xx code', refusal(503, 'new_trouble'), 'new_trouble'],
  ] as const)('is tried again after %s', async (_what, said, code) => {
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn(said, health) }))
    expect((await bench.service.health()).usable).toBe(true)
    expect(bench.retried).toEqual([code])
  })

  test('is given up after four attempts, with the last error', async () => {
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn(html) }))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'http_502', status: 502 })
    expect(bench.server.asked).toHaveLength(4)
  })

  test('shows with its last error whether an earlier attempt had no reply', async () => {
    const refused = refusal(400, 'invalid_request')
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn('reset', refused) }))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'invalid_request', uncertain: true })
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'invalid_request', uncertain: false })
  })

  test('waits longer before each attempt, at random', async () => {
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn(html) }), {
      random: { next: () => 0.999, hex: () => '' },
    })
    const waits: number[] = []
    const fault = faultOf(bench.service.health())
    for (let one = 1; one < 4; one++) {
      await until(() => bench.server.asked.length === one && bench.clock.waiting > 0)
      waits.push(bench.clock.next)
      bench.clock.advance(bench.clock.next)
    }
    await fault
    expect(waits).toEqual([250, 500, 999])
  })

  test.each(['invalid_request', 'permission_denied', 'not_found', 'conflict', 'something_new'])(
    'is not tried again after %s',
    async (code) => {
      await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn(refusal(400, code)) }))
      expect(await faultOf(bench.service.health())).toMatchObject({ code })
      expect(bench.server.asked).toHaveLength(1)
    },
  )

  test('a redirect is an error and is not followed', async () => {
    await using bench = await startBench(() => ({ status: 302, headers: { location: '/v1/elsewhere' } }))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'http_302' })
    expect(bench.server.asked).toHaveLength(1)
  })
})

describe('an act', () => {
  test('of a process that lost its session is not sent again, though its first reply was lost', async () => {
    await using bench = await startBench(
      routes(plainDocument, { [`POST ${ANSWER}`]: inTurn('reset', 'reset') }),
    )
    await bench.service.discover()
    let asked = 0
    const posting = { key: 'key', maySend: () => asked++ === 0 }
    const error = await faultOf(bench.service.answer('s1', 'c1', { output: 'x' }, posting))
    expect(error).toMatchObject({ code: 'superseded', status: 0, uncertain: true })
    expect(bench.server.asked.filter(({ path }) => path === ANSWER)).toHaveLength(1)
  })

  test('without the idempotency header is sent once; a possible effect is reported as no_reply', async () => {
    await using bench = await startBench(routes(withoutKey, { [`POST ${ANSWER}`]: inTurn('reset') }))
    await bench.service.discover()
    const error = await faultOf(bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key' }))
    expect(error).toMatchObject({ code: 'no_reply', status: 0, transient: true })
    expect(bench.server.asked.filter(({ path }) => path === ANSWER)).toHaveLength(1)
  })

  test('without it is not sent again after a 5xx either', async () => {
    await using bench = await startBench(routes(withoutKey, { [`POST ${ANSWER}`]: inTurn(html) }))
    await bench.service.discover()
    expect(await faultOf(bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key' }))).toMatchObject({
      status: 502,
    })
    expect(bench.server.asked.filter(({ path }) => path === ANSWER)).toHaveLength(1)
  })

  test('with it is sent again, the same body under the same key', async () => {
    await using bench = await startBench(
      routes(plainDocument, { [`POST ${ANSWER}`]: inTurn('reset', html, {}) }),
    )
    await bench.service.discover()
    await bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key' })
    const sent = bench.server.asked.filter(({ path }) => path === ANSWER)
    expect(sent.map(({ headers, body }) => [headers['idempotency-key'], body])).toEqual(
      Array.from({ length: 3 }, () => ['key', '{"call_id":"c1","output":"x"}']),
    )
  })

  test('that was refused before anything was done is sent again in any case', async () => {
    const unavailable = refusal(503, 'directory_unavailable', { 'retry-after': '2' })
    await using bench = await startBench(
      routes(withoutKey, { [`POST ${ANSWER}`]: inTurn(unavailable, { body: {} }) }),
    )
    await bench.service.discover()
    const done = bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'key' })
    await until(() => bench.clock.waiting > 0)
    expect(bench.clock.next).toBe(2000)
    bench.clock.advance(2000)
    expect(await done).toBeNull()
    expect(bench.service.authorized()).toBe(true)
  })

  test('a deletion without reply is not repeated', async () => {
    await using bench = await startBench(routes(plainDocument, { 'DELETE /v1/webhooks/w': inTurn('reset') }))
    await bench.service.discover()
    expect(await faultOf(bench.service.deleteWebhook('w'))).toMatchObject({ code: 'no_reply' })
    expect(bench.server.asked.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
  })

  // [fault auth-5]
  test('a request that the limit of sessions refused is never repeated', async () => {
    const full = refusal(429, 'project_limit_exceeded', { 'retry-after': '1' })
    await using bench = await startBench(routes(plainDocument, { [`POST ${ANSWER}`]: inTurn(full) }))
    await bench.service.discover()
    expect(await faultOf(bench.service.answer('s1', 'c1', { output: 'x' }, { key: 'k' }))).toMatchObject({
      code: 'project_limit_exceeded',
    })
    expect(bench.server.asked.filter(({ path }) => path === ANSWER)).toHaveLength(1)
    expect(bench.clock.waiting).toBe(0)
  })

  test('is retried after a refused connection', async () => {
    await using bench = await startBench(() => health)
    await bench.server[Symbol.asyncDispose]()
    expect(await faultOf(bench.service.deleteWebhook('w'))).toMatchObject({ code: 'unreachable', status: 0 })
    expect(bench.retried).toEqual(['unreachable', 'unreachable', 'unreachable'])
  })
})

describe('reads that hang', () => {
  const HUNG = 'GET /v1/sessions/hung'
  const hang: Answerer = () => null

  test('give their slots to requests that wait, and have their whole time at the next try', async () => {
    const answers = { [HUNG]: hang, 'GET /v1/sessions/slow': hang, 'GET /v1/health': inTurn(health) }
    await using bench = await startBench(routes(null, answers), { maxInFlight: 2 })
    const { service, server, clock } = bench
    expect((await service.health()).usable).toBe(true)
    const hung = faultOf(service.readSession('hung'))
    const slow = faultOf(service.readSession('slow'))
    await until(() => server.asked.filter(({ path }) => path.startsWith('/v1/sessions/')).length === 2)
    clock.advance(20_000)
    expect(bench.retried).toEqual([])
    expect((await service.health()).usable).toBe(true)
    expect(await hung).toMatchObject({ code: 'outpaced', uncertain: true })
    expect(bench.retried).toEqual([])

    const again = faultOf(service.readSession('hung'))
    const next = service.health()
    await until(() => server.asked.filter(({ path }) => path === '/v1/sessions/hung').length === 2)
    expect(await slow).toMatchObject({ code: 'outpaced' })
    expect((await next).usable).toBe(true)
    clock.advance(10_000)
    await Promise.all([service.health(), service.health(), service.health()])
    service.stop()
    expect(await again).toMatchObject({ code: 'stopped' })
  })

  test('after slow answers, give their slots later', async () => {
    let answer: ((said: Said) => void) | undefined
    const answers: Record<string, Answerer> = {
      [HUNG]: hang,
      'GET /v1/sessions/slow': () => new Promise((resolve) => (answer = resolve)),
      'GET /v1/health': inTurn(health),
    }
    await using bench = await startBench(routes(null, answers), { maxInFlight: 1 })
    const { service, server, clock } = bench
    const slow = service.readSession('slow')
    await until(() => answer !== undefined)
    clock.advance(4000)
    answer?.({ body: { object: 'session', id: 'slow', status: 'idle', updated_at: 5, required_actions: [] } })
    await slow
    const hung = faultOf(service.readSession('hung'))
    await until(() => server.asked.some(({ path }) => path === '/v1/sessions/hung'))
    const waiting = service.health()
    await until(() => clock.waiting > 0)
    let isEnded = false
    void hung.then(() => (isEnded = true))
    clock.advance(9_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(isEnded).toBe(false)
    clock.advance(6_000)
    expect(await hung).toMatchObject({ code: 'outpaced' })
    expect((await waiting).usable).toBe(true)
  })

  /** A client of `processes` with one token. Four reads hang, and were ended before because others waited. */
  async function withHungReads(processes: number) {
    const ids = ['a', 'b', 'c', 'd']
    const answers: Record<string, Answerer> = { [`POST ${ANSWER}`]: inTurn({ body: {} }) }
    for (const id of ids) answers[`GET /v1/sessions/${id}`] = hang
    const bench = await startBench(routes(plainDocument, answers))
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const { service, clock } = bench
    service.share(processes)
    const codes: string[] = []
    const begin = (): void => {
      for (const id of ids)
        void faultOf(service.readSession(id)).then((error) => codes.push((error as ServiceError).code))
    }
    /** Other requests, at once. @returns the milliseconds until all are answered. */
    const others = async (count: number): Promise<number> => {
      const begun = clock.now()
      let served = 0
      for (let made = 0; made < count; made++)
        void service.answer('s1', 'c1', { output: 'x' }, { key: 'key' }).then(() => served++)
      await until(() => {
        if (served < count && clock.waiting > 0) clock.advance(clock.next)
        return served === count
      })
      return clock.now() - begun
    }
    begin()
    while (codes.length < ids.length) await others(2)
    expect(codes.splice(0)).toEqual(ids.map(() => 'outpaced'))
    begin()
    return { codes, others }
  }

  test('that were ended before keep only half of the slots', async () => {
    const { others } = await withHungReads(3)
    // One of two slots is kept. In the other, three reads are ended one after the other.
    expect(await others(1)).toBeLessThanOrEqual(20_000)
  })

  test('that were ended before count as without an answer if there is only one slot', async () => {
    const { codes, others } = await withHungReads(8)
    expect(await others(1)).toBeLessThanOrEqual(4 * 15_000 + 5000)
    while (codes.length < 4) await others(2)
    expect(codes).toEqual(['too_slow', 'too_slow', 'too_slow', 'too_slow'])
  })

  test('count as without an answer after an attempt that had its whole time, though the next one was ended', async () => {
    let attempts = 0
    const answers: Record<string, Answerer> = {
      // The first attempt breaks as after a time-out.
      [HUNG]: (_asked, response) => {
        if (++attempts === 1) response.destroy()
        return null
      },
      [`POST ${ANSWER}`]: inTurn({ body: {} }),
    }
    await using bench = await startBench(routes(plainDocument, answers), { maxInFlight: 1 })
    const { service, clock } = bench
    const hung = faultOf(service.readSession('hung'))
    await until(() => attempts === 2)
    const answered = service.answer('s1', 'c1', { output: 'x' }, { key: 'key' })
    await until(() => clock.waiting > 0)
    clock.advance(5000)
    await answered
    expect(await hung).toMatchObject({ code: 'no_reply' })
  })

  test('show with their errors whether other requests succeed meanwhile', async () => {
    const answers: Record<string, Answerer> = {
      [HUNG]: inTurn(html),
      'GET /v1/health': inTurn(health),
      'GET /v1/sessions/fine': () => ({
        body: { object: 'session', id: 'fine', status: 'idle', updated_at: 5, required_actions: [] },
      }),
    }
    await using bench = await startBench(routes(null, answers))
    const { service, clock } = bench
    const fault = async (): Promise<unknown> => {
      clock.advance(1)
      const error = (await faultOf(service.readSession('hung'))) as ServiceError
      clock.advance(1)
      return [error.beside, isParticular(error, 100)]
    }
    const fine = { same: () => service.readSession('fine'), any: () => service.health() }
    // During an outage, however long, and for its first failures after it.
    for (let times = 0; times < 15; times++) expect(await fault()).toEqual([{ same: 0, any: 0 }, false])
    for (const [count, isAlone] of [
      [1, false],
      [2, false],
      [3, true],
    ] as const) {
      await fine.same()
      expect(await fault()).toEqual([{ same: count, any: count }, isAlone])
    }
    // A new outage.
    expect(await fault()).toEqual([{ same: 0, any: 0 }, false])
    for (let count = 1; count <= 12; count++) {
      await fine.any()
      expect(await fault()).toEqual([{ same: 0, any: count }, count === 12])
    }
  })
})

describe('the rate budget', () => {
  const limited = refusal(429, 'rate_limit_exceeded', { 'retry-after': '3' })

  test('nothing is sent before Retry-After, and no storm of requests follows', async () => {
    let open = false
    let inFlight = 0
    const together: number[] = []
    await using bench = await startBench((asked) => {
      if (!open || asked.path === '/none') return limited
      together.push(++inFlight)
      return new Promise((resolve) => {
        setImmediate(() => {
          inFlight--
          resolve(health)
        })
      })
    })
    const first = bench.service.health()
    await until(() => bench.server.asked.length === 1 && bench.clock.waiting > 0)
    const others = Array.from({ length: 30 }, () => bench.service.health())
    bench.clock.advance(2999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(bench.server.asked).toHaveLength(1)
    open = true
    bench.clock.advance(1)
    await Promise.all([first, ...others])
    expect(together[0]).toBe(1)
    expect(Math.max(...together)).toBeLessThanOrEqual(8)
    expect(bench.server.asked).toHaveLength(32)
    expect(bench.retried).toEqual(['rate_limit_exceeded'])
  })

  test('requests that wait for their turn when it runs out are not sent', async () => {
    const held: ((said: Said) => void)[] = []
    await using bench = await startBench(() => new Promise((resolve) => held.push(resolve)), {
      maxInFlight: 2,
    })
    const all = Array.from({ length: 10 }, () => bench.service.health())
    await until(() => held.length === 2)
    for (const say of held.splice(0)) say(limited)
    await until(() => bench.clock.waiting >= 10)
    expect(bench.server.asked).toHaveLength(2)
    bench.server.answer = () => health
    bench.clock.advance(3000)
    await Promise.all(all)
  })

  test('a wait beyond patience fails at once and says how long it is', async () => {
    const long = refusal(429, 'rate_limit_exceeded', { 'retry-after': '600' })
    await using bench = await startBench(() => long)
    expect(await faultOf(bench.service.health())).toMatchObject({
      code: 'rate_limit_exceeded',
      retryAfter: 600_000,
      requestId: 'req_1',
    })
    expect(await faultOf(bench.service.health())).toMatchObject({
      code: 'rate_limit_exceeded',
      retryAfter: 600_000,
    })
    expect(bench.server.asked).toHaveLength(1)
  })

  test('a service that always answers Retry-After 0 is not asked without end', async () => {
    await using bench = await startBench(() => refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' }))
    const ended: unknown[] = []
    void bench.service.health().catch((error: unknown) => ended.push(error))
    await until(() => {
      if (bench.clock.waiting > 0) bench.clock.advance(100)
      return ended.length > 0
    })
    expect(ended).toMatchObject([{ code: 'rate_limit_exceeded' }])
    expect(bench.server.asked.length).toBeLessThan(700)
  })
})

describe('a directory that is unavailable', () => {
  const unavailable = (seconds: string) => refusal(503, 'directory_unavailable', { 'retry-after': seconds })
  const settled = () => new Promise((resolve) => setTimeout(resolve, 30))

  /** One after the other would still be inside the wait of another route: 11 of 14 requests were. */
  test('delays every request until Retry-After: other routes, writes, discovery and the stream', async () => {
    await using bench = await startBench(() => unavailable('6'))
    const { service, server, clock } = bench
    const all = [service.health()]
    await until(() => server.asked.length === 1 && clock.waiting > 0)
    const stream = await faultOf(service.openStream(null, new AbortController().signal))
    expect(stream).toMatchObject({ code: 'directory_unavailable', status: 503, retryAfter: 6000 })
    const others = [
      service.listSessions({}),
      service.listTurns('s1', {}),
      service.listWebhooks(),
      service.createWebhook('https://a.example', 'key'),
      service.answer('s1', 'c1', { output: 'x' }, { key: 'key' }),
      service.discover(),
    ].map((promise) => faultOf(promise))
    clock.advance(5999)
    await settled()
    expect(server.asked).toHaveLength(1)
    expect(service.heldUntil()).toBe(clock.now() + 1)
    clock.advance(1)
    await until(() => server.asked.length > 1)
    await settled()
    // The first of each bucket tries, and is refused again: there is no storm.
    expect(server.asked.length).toBeLessThanOrEqual(3)
    service.stop()
    await Promise.all([...all.map((promise) => faultOf(promise)), ...others])
    expect(service.heldUntil()).toBeNull()
  })

  test('may ask for two hours, and is asked no sooner', async () => {
    await using bench = await startBench(() => unavailable('7200'))
    expect(await faultOf(bench.service.health())).toMatchObject({ retryAfter: 7_200_000 })
    bench.clock.advance(7_139_999)
    // It cannot wait so long: it fails at once, unsent.
    expect(await faultOf(bench.service.listWebhooks())).toMatchObject({ code: 'directory_unavailable' })
    const patient = bench.service.health()
    bench.clock.advance(60_000)
    await settled()
    expect(bench.server.asked).toHaveLength(1)
    bench.server.answer = () => health
    bench.clock.advance(1)
    expect(await patient).toMatchObject({ usable: true })
    expect(bench.warnings).toEqual([expect.stringMatching(/every request waits until 20.*Z$/)])
  })

  test('that asks for a week is asked again after a day, and the log says so', async () => {
    await using bench = await startBench(() => unavailable('604800'))
    expect(await faultOf(bench.service.health())).toMatchObject({ retryAfter: 86_400_000 })
    expect(bench.warnings).toEqual([expect.stringContaining('a day is the maximum')])
  })

  test('may give a date, by the clock of the service', async () => {
    const headers = { date: 'Fri, 21 Nov 2025 05:20:00 GMT', 'retry-after': 'Fri, 21 Nov 2025 05:22:00 GMT' }
    await using bench = await startBench(() => refusal(503, 'directory_unavailable', headers))
    expect(await faultOf(bench.service.health())).toMatchObject({ retryAfter: 120_000 })
    expect(await faultOf(bench.service.listWebhooks())).toMatchObject({ retryAfter: 120_000 })
    expect(bench.server.asked).toHaveLength(1)
  })
})

test.each([
  ['a 503 of a proxy', { status: 503, headers: { 'retry-after': '90' }, body: '<html>' }, 'http_503', 1],
  ['another 503 of the service', refusal(503, 'new_trouble', { 'retry-after': '90' }), 'new_trouble', 1],
  ['a 429 of a proxy', { status: 429, headers: { 'retry-after': '90' }, body: '<html>' }, 'http_429', 1],
  ['a 502 with Retry-After, which is about one request', refusal(502, 'x', { 'retry-after': '90' }), 'x', 2],
  [
    'a full organization',
    refusal(429, 'project_limit_exceeded', { 'retry-after': '90' }),
    'project_limit_exceeded',
    2,
  ],
])(
  '%s decides whether another operation is asked meanwhile, which gets that error',
  async (_what, said, code, asked) => {
    await using bench = await startBench(() => said)
    await faultOf(bench.service.health())
    const fault = await faultOf(bench.service.openStream(null, new AbortController().signal))
    expect(bench.server.asked).toHaveLength(asked)
    expect(fault).toMatchObject({ code, status: said.status, retryAfter: 90_000, unsent: asked === 1 })
  },
)

test('no more requests are under way at once than allowed', async () => {
  const held: ((said: Said) => void)[] = []
  await using bench = await startBench(() => new Promise((resolve) => held.push(resolve)))
  const all = Promise.all(Array.from({ length: 24 }, () => bench.service.health()))
  const batches: number[] = []
  while (batches.length < 3) {
    await until(() => held.length === 8)
    await new Promise((resolve) => setImmediate(resolve))
    batches.push(held.length)
    for (const say of held.splice(0)) say(health)
  }
  await all
  expect(batches).toEqual([8, 8, 8])
})

test('stopping ends running requests, waiting retries, and later requests', async () => {
  await using bench = await startBench(() => null)
  const hanging = faultOf(bench.service.health())
  await until(() => bench.server.asked.length === 1)
  bench.server.answer = () => refusal(503, 'directory_unavailable', { 'retry-after': '9' })
  const waiting = faultOf(bench.service.health())
  await until(() => bench.clock.waiting > 0)
  bench.service.stop()
  expect(await hanging).toMatchObject({ code: 'stopped' })
  expect(await waiting).toMatchObject({ code: 'stopped' })
  const before = bench.server.asked.length
  expect(await faultOf(bench.service.health())).toMatchObject({ code: 'stopped' })
  // Its own signal is not aborted, and yet no request is sent.
  const stream = bench.service.openStream(null, new AbortController().signal)
  expect(await faultOf(stream)).toMatchObject({ code: 'stopped' })
  expect(bench.server.asked).toHaveLength(before)
  expect(bench.clock.waiting).toBe(0)
})

describe('a client that drains', () => {
  // Only a refusal by rate proves that the request had no effect.
  test.each([
    ['a 503 with Retry-After', refusal(503, 'unavailable', { 'retry-after': '20' }), true],
    ['a 429 of a proxy', { ...html, status: 429, headers: { 'retry-after': '20' } }, true],
    ['a used-up rate budget', refusal(429, 'rate_limit_exceeded', { 'retry-after': '20' }), false],
  ])('lets no request wait after %s', async (_what, said, uncertain) => {
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn(said, health) }))
    const waiting = faultOf(bench.service.health())
    await until(() => bench.clock.waiting > 0 && bench.server.asked.length === 1)
    bench.service.drain()
    expect(await waiting).toMatchObject({ code: 'stopped', uncertain })
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'stopped', uncertain: false })
    expect(bench.server.asked).toHaveLength(1)
  })

  test('knows no less of the routes: what waits for the document fails as stopped', async () => {
    await using bench = await startBench(
      routes(null, { 'GET /v1/openapi.json': inTurn(refusal(503, 'unavailable', { 'retry-after': '20' })) }),
    )
    const waiting = faultOf(bench.service.answer('s1', 'c1', { output: '42' }, { key: 'c1' }))
    await until(() => bench.clock.waiting > 0 && bench.server.asked.length === 1)
    bench.service.drain()
    expect(await waiting).toMatchObject({ code: 'stopped', uncertain: false })
    expect(bench.service.discovery().fault).toBe('it was not read yet')
  })

  test('reports of a request without a reply that it may have had its effect', async () => {
    await using bench = await startBench(routes(null, { 'GET /v1/health': inTurn('reset') }), {
      random: { next: () => 0.999, hex: () => '' },
    })
    const waiting = faultOf(bench.service.health())
    await until(() => bench.clock.waiting > 0 && bench.server.asked.length === 1)
    bench.service.drain()
    expect(await waiting).toMatchObject({ code: 'stopped', uncertain: true })
  })
})
