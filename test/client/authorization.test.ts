import { describe, expect, test } from 'vitest'
import { faultOf, refusal, routes, startBench } from '../support/service/client.ts'
import { until } from '../support/service/server.ts'
import type { Said } from '../support/service/server.ts'

const health = { body: { scopes: [], usable: true } }

describe('a rejected token', () => {
  test('ends all requests until it changes', async () => {
    await using bench = await startBench(({ headers }) =>
      headers['authorization'] === 'Bearer svc_pat_two' ? health : { status: 401 },
    )
    const reports: boolean[] = []
    bench.service.onAuthorization((authorized) => reports.push(authorized))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'unauthorized', status: 401 })
    expect(bench.service.authorized()).toBe(false)
    bench.service.setToken('svc_pat_one\n')
    const { signal } = new AbortController()
    const refused = [
      bench.service.health(),
      bench.service.deleteWebhook('w'),
      bench.service.openStream(null, signal),
    ]
    for (const request of refused) {
      expect(await faultOf(request)).toMatchObject({ code: 'unauthorized', status: 401 })
    }
    expect((await bench.service.discover()).documented).toBe(false)
    expect(bench.server.asked).toHaveLength(1)
    bench.service.setToken('svc_pat_two\n')
    expect((await bench.service.health()).usable).toBe(true)
    expect(reports).toEqual([false, true])
  })

  test('may have any error code', async () => {
    await using bench = await startBench(() => refusal(401, 'token_revoked'))
    expect(await faultOf(bench.service.health())).toMatchObject({ code: 'token_revoked', unauthorized: true })
    expect(bench.service.authorized()).toBe(false)
  })

  test('does not affect the token that came after it', async () => {
    const held: ((said: Said) => void)[] = []
    await using bench = await startBench(() => new Promise((resolve) => held.push(resolve)))
    const old = faultOf(bench.service.health())
    await until(() => held.length === 1)
    bench.service.setToken('svc_pat_two')
    held[0]?.({ status: 401 })
    expect(await old).toMatchObject({ status: 401 })
    expect(bench.service.authorized()).toBe(true)
  })

  test('stops requests that wait for their turn', async () => {
    const held: ((said: Said) => void)[] = []
    await using bench = await startBench(() => new Promise((resolve) => held.push(resolve)), {
      maxInFlight: 1,
    })
    const both = [bench.service.health(), bench.service.health()].map(faultOf)
    await until(() => held.length === 1)
    held[0]?.({ status: 401 })
    expect(await Promise.all(both)).toMatchObject([{ status: 401 }, { status: 401 }])
    expect(bench.server.asked).toHaveLength(1)
  })
})

test('a gateway that hides the description of the service behind a sign-in rejects no token', async () => {
  await using bench = await startBench(({ path }) => (path === '/v1/openapi.json' ? { status: 401 } : health))
  expect((await bench.service.discover()).documented).toBe(false)
  expect(bench.service.authorized()).toBe(true)
  expect((await bench.service.health()).usable).toBe(true)
})

// [fault auth-2]
test('an unavailable directory rejects no token, even under a 401', async () => {
  await using bench = await startBench(() => refusal(401, 'directory_unavailable', { 'retry-after': '100' }))
  expect(await faultOf(bench.service.health())).toMatchObject({
    code: 'directory_unavailable',
    retryAfter: 100_000,
  })
  expect(bench.service.authorized()).toBe(true)
})

// [fault auth-3]
test('a missing scope stops only what needs it, in the words of the service', async () => {
  await using bench = await startBench(
    routes(null, {
      'GET /v1/webhooks': () => refusal(403, 'permission_denied'),
      'GET /v1/health': () => health,
    }),
  )
  expect(await faultOf(bench.service.listWebhooks())).toMatchObject({
    code: 'permission_denied',
    requestId: 'req_1',
  })
  expect((await bench.service.health()).usable).toBe(true)
})

test('the token is in no error, log or observation', async () => {
  await using bench = await startBench(() => refusal(400, 'invalid_request'))
  const error = await faultOf(bench.service.health())
  const all = JSON.stringify([error, String(error), bench.warnings, bench.seen, bench.service.discovery()])
  expect(all).not.toContain('svc_pat_one')
})
