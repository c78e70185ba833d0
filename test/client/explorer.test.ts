import { describe, expect, it } from 'vitest'
import { ServiceError } from '../../src/core/errors.ts'
import { discover } from '../../src/client/discovery/discovery.ts'
import type { Discovery, OperationName } from '../../src/client/discovery/discovery.ts'
import { Explorer } from '../../src/client/explorer.ts'
import type { Call } from '../../src/client/transport/requester.ts'
import type { Route } from '../../src/client/discovery/route.ts'
import { ManualClock } from '../support/service/clock.ts'
import { otherDocument, plainDocument } from '../support/service/documents.ts'

const refused = (status: number, code = 'refused') => new ServiceError({ status, code, message: code })

/** An explorer of a service that answers with what `answer` returns or throws. */
function exploring(answer: (call: Call) => unknown) {
  const clock = new ManualClock()
  const calls: Call[] = []
  const warnings: unknown[] = []
  const nothing = () => undefined
  const log = { debug: nothing, info: nothing, error: nothing, child: () => log, warn }
  function warn(details: unknown): void {
    warnings.push(details)
  }
  const explorer = new Explorer<OperationName, Discovery>({
    requester: {
      async send(call) {
        calls.push(call)
        const body = await answer(call)
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        return { status: 200, headers: {}, body: text, truncated: false }
      },
    },
    clock,
    log,
    discover: (document) => discover(document),
  })
  return { explorer, clock, calls, warnings }
}

async function known(document: unknown, then: (call: Call) => unknown = () => document) {
  let first = true
  const world = exploring((call) => {
    const answer = first ? document : then(call)
    first = false
    return answer
  })
  await world.explorer.discover()
  return world
}

describe('the description of the service', () => {
  it('is not read at first: the routes of the interface are known, and the others have a reason', () => {
    const { explorer, calls } = exploring(() => plainDocument)
    expect(explorer.found).toMatchObject({ documented: false, fault: 'it was not read yet' })
    expect(explorer.found.routes.listSessions).toMatchObject({ found: true, how: 'default' })
    expect(calls).toEqual([])
  })

  it('is read once for simultaneous requests, and again for a later request', async () => {
    const { explorer, calls } = exploring(() => plainDocument)
    const [one, other] = await Promise.all([explorer.discover(), explorer.discover()])
    expect(one).toBe(other)
    expect(one).toBe(explorer.found)
    expect(one).toMatchObject({ documented: true, fault: null })
    expect(calls).toEqual([
      { operation: 'discover', method: 'GET', path: '/v1/openapi.json', anonymous: true },
    ])
    await explorer.discover()
    expect(calls).toHaveLength(2)
  })

  it.each([401, 403])('is read with the token where it is refused without it (%i)', async (status) => {
    const { explorer, calls } = exploring((call) => {
      if (call.anonymous === true) throw refused(status)
      return plainDocument
    })
    expect((await explorer.discover()).documented).toBe(true)
    expect(calls.map(({ anonymous }) => anonymous)).toEqual([true, undefined])
  })

  it.each([
    ['a refusal', () => Promise.reject(refused(404, 'not_found')), 'not_found'],
    ['a failure', () => Promise.reject(new Error('the line is dead')), 'the line is dead'],
    ['no JSON', () => '{"paths":', expect.stringMatching(/JSON/)],
    ['nothing in it', () => ({}), 'it describes no operation'],
  ])(
    'that cannot be read (%s) removes no known route, and the reason is reported',
    async (_, answer, fault) => {
      const { explorer, calls, warnings } = await known(plainDocument, answer)
      const found = await explorer.discover()
      expect(found).toMatchObject({ documented: true, fault, routes: { answer: { found: true } } })
      expect(explorer.found).toBe(found)
      expect(warnings).toEqual([{ reason: fault }])
      expect(calls).toHaveLength(2)
    },
  )
})

describe('a route', () => {
  it('that needs the document causes a read of it; any other route does not', async () => {
    const { explorer, calls } = exploring(() => plainDocument)
    expect(await explorer.route('listSessions')).toMatchObject({ how: 'default' })
    expect(calls).toHaveLength(0)
    expect(await explorer.route('answer')).toMatchObject({ path: '/v1/sessions/{session_id}/actions' })
    expect(calls).toHaveLength(1)
  })

  it('that the document does not have is not looked for again', async () => {
    const { explorer, clock, calls } = await known({ paths: { '/v1/health': { get: {} } } })
    clock.advance(3_600_000)
    expect(explorer.lacking).toBe(false)
    expect(await explorer.route('answer')).toMatchObject({ found: false })
    expect(calls).toHaveLength(1)
  })

  it('without a document is searched for every five seconds, from the end of the last search', async () => {
    const { explorer, clock, calls } = exploring(() => {
      clock.advance(30_000)
      throw refused(503)
    })
    expect(explorer.lacking).toBe(true)
    await explorer.discover()
    clock.advance(4999)
    expect(explorer.lacking).toBe(false)
    await expect(explorer.route('answer')).rejects.toMatchObject({ status: 503 })
    expect(calls).toHaveLength(1)
    clock.advance(1)
    expect(explorer.lacking).toBe(true)
    await expect(explorer.route('answer')).rejects.toMatchObject({ status: 503 })
    expect(calls).toHaveLength(2)
  })

  it('is not taken for missing while the service is replaced, but after a minute', async () => {
    const { explorer, clock } = exploring(() => {
      throw refused(502)
    })
    await explorer.discover()
    for (const after of [0, 5000, 50_000]) {
      clock.advance(after)
      await expect(explorer.route('listArtifacts')).rejects.toMatchObject({ status: 502 })
    }
    clock.advance(5000)
    expect(await explorer.route('listArtifacts')).toMatchObject({ found: false })
  })

  it('is missing at once where the service says so', async () => {
    const { explorer } = exploring(() => {
      throw refused(404)
    })
    expect(await explorer.route('listArtifacts')).toMatchObject({ found: false })
  })

  it('that is asked for while the document is read waits for it', async () => {
    const document = Promise.withResolvers<unknown>()
    const { explorer, calls } = exploring(() => document.promise)
    const found = explorer.discover()
    const route = explorer.route('answer')
    document.resolve(plainDocument)
    expect(await route).toBe((await found).routes.answer)
    expect(calls).toHaveLength(1)
  })
})

describe('a route that is not there any more', () => {
  const GONE = refused(404, 'no_route')

  /** Goes to `operation`, which answers `error` for as long as it is where it was. */
  async function moved(
    operation: OperationName,
    error: unknown,
    { to = otherDocument, after = 60_000 }: { to?: unknown; after?: number } = {},
  ) {
    const { explorer, clock, calls } = await known(plainDocument, () => to)
    clock.advance(after)
    const old = explorer.found.routes[operation] as Route
    const came = await explorer
      .follow(operation, old, async (route) => {
        if (route === old) throw error
        return route.path
      })
      .catch((fault: unknown) => fault)
    return { came, reads: calls.length - 1 }
  }

  it.each([
    ['405', refused(405), 'answer'],
    ['405, whatever its code', refused(405, 'not_found'), 'answer'],
    ['404 that is not of the service', GONE, 'answer'],
    ['404 of a path that only the document has', refused(404, 'not_found'), 'answer'],
  ] as const)('is searched for again after a %s', async (_, error, operation) => {
    expect(await moved(operation, error)).toEqual({ came: '/v1/tool-results', reads: 1 })
  })

  it.each([
    ['a 404 of a resource', refused(404, 'not_found'), 'readSession'],
    ['a 404 of a resource whose path the document has as well', refused(404, 'not_found'), 'health'],
    ['another refusal', refused(409, 'conflict'), 'answer'],
    ['a failure of the service', refused(500, 'not_found'), 'answer'],
    ['a mistake of ours', new TypeError('undefined is not a function'), 'answer'],
  ] as const)('is not searched for after %s', async (_, error, operation) => {
    expect(await moved(operation, error)).toEqual({ came: error, reads: 0 })
  })

  it('is not searched for within a minute of the last search', async () => {
    expect(await moved('answer', GONE, { after: 59_999 })).toEqual({ came: GONE, reads: 0 })
  })

  it('has not moved when the document says the same as before, or nothing', async () => {
    expect(await moved('answer', GONE, { to: plainDocument })).toEqual({ came: GONE, reads: 1 })
    const nothing = { paths: { '/v1/health': { get: {} } } }
    expect(await moved('answer', GONE, { to: nothing })).toEqual({ came: GONE, reads: 1 })
  })

  it('that is also missing at its new path is not looked up again', async () => {
    const { explorer, clock } = await known(plainDocument, () => otherDocument)
    clock.advance(60_000)
    let times = 0
    const gone = explorer.follow('answer', explorer.found.routes.answer as Route, async () => {
      times++
      throw GONE
    })
    await expect(gone).rejects.toBe(GONE)
    expect(times).toBe(2)
  })

  it('has moved if only its method changed', async () => {
    const { explorer, clock } = await known(plainDocument)
    const old: Route = { ...(explorer.found.routes.answer as Route), method: 'PUT' }
    clock.advance(60_000)
    const went: string[] = []
    await explorer.follow('answer', old, async ({ method }) => {
      went.push(method)
      if (method === 'PUT') throw GONE
    })
    expect(went).toEqual(['PUT', 'POST'])
  })

  it('is looked for when it is the stream of one session, whose path only the document has', async () => {
    expect(await moved('sessionStream', refused(404, 'not_found'))).toEqual({
      came: '/v1/sessions/{id}/stream',
      reads: 1,
    })
  })
})
