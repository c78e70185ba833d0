import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { PERSISTED_EVENTS, WEBHOOK_EVENTS } from '../../src/emulator/event.ts'
import { profileA } from '../../src/emulator/profile/a.ts'
import { profileB } from '../../src/emulator/profile/b.ts'
import { listen } from './listener.ts'
import { open, PROFILES, rowsOf, until, type Bench, type Fields } from './support.ts'

type Paths = Record<string, Record<string, Fields>>

async function documentOf(bench: Bench): Promise<Fields> {
  const token = bench.token
  bench.token = 'none'
  const reply = await bench.call('GET', '/v1/openapi.json')
  bench.token = token
  expect(reply.status).toBe(200)
  return reply.body
}

/** Checks a value against a shape of the description. */
function fits(doc: Fields, name: string, value: unknown): string[] {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { uuid: true } })
  const schemas = (doc['components'] as { schemas: Fields }).schemas
  const check = ajv.compile({ $ref: `#/components/schemas/${name}`, components: { schemas } })
  return check(value)
    ? []
    : (check.errors ?? []).map(({ instancePath, message }) => `${name}${instancePath} ${message}`)
}

/** True when some path template of the description, `/archive` being an id for one of them, takes this request. */
function isDescribed(doc: Fields, path: string, method: string): boolean {
  return Object.entries(doc['paths'] as Paths).some(
    ([template, methods]) =>
      methods[method] !== undefined && new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
}

function refsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]) => (key === '$ref' ? [String(field)] : refsIn(field)))
}

describe.each(PROFILES)('the description, profile %s', (profile) => {
  it('HLT-08 points to the description from /v1', async () => {
    const bench = await open(profile)
    const { status, headers } = await bench.call('GET', '/v1')
    expect([status, headers['link']]).toEqual([200, '</v1/openapi.json>; rel=service-desc'])
  })

  it('HLT-09 HLT-10 HLT-11 VER-07 VER-08 describes every route that is there, and none that is not', async () => {
    const bench = await open(profile)
    const doc = await documentOf(bench)
    expect(doc['openapi']).toBe('3.1.0')
    const ids: unknown[] = []
    for (const [path, methods] of Object.entries(doc['paths'] as Paths)) {
      expect(path).toMatch(/^\/v1(\/|$)/)
      for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
        const described = isDescribed(doc, path.replaceAll(/\{\w+\}/g, 'x'), method)
        bench.token = path === '/v1/openapi.json' ? bench.emulator.token : 'none'
        const reply = await bench.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'))
        const unknown = reply.status === 404 && reply.text.includes('no route')
        expect([path, method, !unknown]).toEqual([path, method, described])
        if (methods[method] !== undefined) ids.push(methods[method]['operationId'])
      }
    }
    expect(new Set(ids).size).toBe(ids.length)
    for (const name of Object.values(bench.details.paths)) expect(doc['paths']).toHaveProperty([name])
  })

  it('HLT-12 HLT-13 names every path, query and header parameter, and every shape it refers to', async () => {
    const bench = await open(profile)
    const doc = await documentOf(bench)
    const schemas = (doc['components'] as { schemas: Fields }).schemas
    for (const ref of refsIn(doc)) expect(schemas).toHaveProperty([ref.replace('#/components/schemas/', '')])
    for (const [path, methods] of Object.entries(doc['paths'] as Paths)) {
      for (const operation of Object.values(methods)) {
        const names = (operation['parameters'] as { name: string; in: string }[]).map(
          (one) => `${one.in}:${one.name}`,
        )
        for (const [, name] of path.matchAll(/\{(\w+)\}/g)) expect(names).toContain(`path:${name}`)
      }
    }
    const at = (path: string, method: string): string[] =>
      rowsOf((doc['paths'] as Paths)[path]?.[method]?.['parameters'] ?? []).map(({ name }) => String(name))
    expect(at('/v1/sessions', 'get')).toEqual(['limit', 'order', 'after', 'metadata', 'status'])
    expect(at('/v1/sessions', 'post')).toEqual([bench.details.idempotency.header])
    expect(at(bench.details.paths.message, 'post')).toEqual(['session_id', bench.details.idempotency.header])
    expect(at(bench.details.paths.answer, 'post')).toEqual(['session_id', bench.details.idempotency.header])
    expect(at('/v1/events', 'get')).toEqual(['last_event_id', 'Last-Event-ID'])
  })

  it('HLT-15 VER-10 VER-11 VER-12 shows one payload for each event name, and the media types', async () => {
    const bench = await open(profile)
    const doc = await documentOf(bench)
    const content = (path: string) => {
      const operation = (doc['paths'] as Paths)[path]?.['get'] as {
        responses: Record<string, { content: Record<string, Fields> }>
      }
      return operation.responses['200']?.content ?? {}
    }
    for (const path of ['/v1/events', bench.details.paths.sessionStream]) {
      const examples = content(path)['text/event-stream']?.['examples'] as Record<string, { value: Fields }>
      for (const name of [...PERSISTED_EVENTS, ...bench.details.stream.transients]) {
        expect(examples[name]?.value['type']).toBe(name)
        expect(fits(doc, 'StreamFrame', examples[name]?.value)).toEqual([])
      }
      expect(examples).toHaveProperty([bench.details.stream.stop.name])
    }
    expect(Object.keys(doc['webhooks'] as Fields)).toEqual([...WEBHOOK_EVENTS])
    expect(Object.keys(content('/v1/sessions/{session_id}/artifacts/archive'))).toEqual(['application/x-tar'])
    expect(Object.keys(content('/v1/sessions/{session_id}/artifacts/{artifact_id}/content'))).toEqual([
      'application/octet-stream',
    ])
  })

  it('the budget headers that are described are the ones that are sent', async () => {
    const bench = await open(profile)
    const doc = await documentOf(bench)
    const operation = (doc['paths'] as Paths)['/v1/sessions']?.['get'] as {
      responses: Record<string, { headers: Fields }>
    }
    const { headers } = await bench.call('GET', '/v1/sessions')
    for (const name of Object.keys(operation.responses['200']?.headers ?? {}))
      expect(headers).toHaveProperty([name])
    expect(Object.keys(operation.responses['200']?.headers ?? {}).length).toBeGreaterThan(2)
  })

  it('what the service sends has the shapes that it describes', async () => {
    const bench = await open(profile)
    const doc = await documentOf(bench)
    const stream = await listen(bench)
    const id = await bench.session({
      metadata: { a: 'b' },
      agent: { tools: [{ type: 'function', name: 'f', timeout_seconds: 9 }, { type: 'browse' }] },
    })
    const reply = await bench.send(
      id,
      'think x\nwrite outputs/a.txt hi\ncall f {}\nask Why?\napprove shell ls\nfail bad',
    )
    expect(fits(doc, 'InputReply', reply.body)).toEqual([])
    const [call] = await bench.actions(id)
    expect(fits(doc, 'Session', await bench.read(id))).toEqual([])
    const answer = await bench.answer(id, { call_id: call?.['call_id'], output: '' })
    expect(fits(doc, 'AnswerReply', answer.body)).toEqual([])
    for (const [type, verdict] of [
      ['question', { answer: 'x' }],
      ['approval', { approved: true }],
    ] as const) {
      const session = await until(async () => {
        const read = await bench.read(id)
        return JSON.stringify(read['required_actions']).includes(`"type":"${type}"`) ? read : undefined
      })
      expect(fits(doc, 'Session', session)).toEqual([])
      bench.emulator.resolveAction(String((session['required_actions'] as Fields[])[0]?.['call_id']), verdict)
    }
    await bench.settle(id)
    const places = {
      SessionList: '/v1/sessions',
      TurnList: `/v1/sessions/${id}/turns`,
      ItemList: `/v1/sessions/${id}/items?limit=100`,
      ArtifactList: bench.path('artifacts', id),
      SessionTools: `/v1/sessions/${id}/tools`,
      WebhookSubscriptionList: '/v1/webhooks',
      ModelConnectorList: '/v1/model-connectors',
      ModelCredentialList: '/v1/model-credentials',
      Health: '/v1/health',
      Service: '/v1',
      Error: '/v1/nothing',
    }
    for (const [name, path] of Object.entries(places)) {
      expect(fits(doc, name, (await bench.call('GET', path)).body)).toEqual([])
    }
    await stream.hear('artifact.created')
    for (const { data } of stream.frames) expect(fits(doc, 'StreamFrame', data)).toEqual([])
  })
})

it('the two profiles differ in every detail that the interface does not show', () => {
  const [a, b] = [profileA, profileB]
  const same = Object.keys(a).filter((key) => {
    const [one, two] = [a, b].map((profile): unknown => Reflect.get(profile, key))
    return typeof one !== 'function' && JSON.stringify(one) === JSON.stringify(two)
  })
  expect(same).toEqual([])
  for (const name of Object.keys(a.paths) as (keyof typeof a.paths)[])
    expect([name, a.paths[name]]).not.toEqual([name, b.paths[name]])
  for (const name of Object.keys(a.limits) as (keyof typeof a.limits)[])
    expect([name, a.limits[name]]).not.toEqual([name, b.limits[name]])
  const event = { seq: 1, at: 1, type: 'turn.started', sessionId: 's', turnId: 't', payload: {} }
  expect(a.frame(event)).toMatchObject({ session_id: 's', turn_id: 't', payload: {} })
  expect(b.frame(event)).toMatchObject({ payload: { sessionId: 's', turnId: 't' } })
  expect(b.frame(event)).not.toHaveProperty('session_id')
})
