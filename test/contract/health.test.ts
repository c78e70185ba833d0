import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { PERSISTED_EVENTS, WEBHOOK_EVENTS } from '../../src/emulator/event.ts'
import type { Scope } from '../../src/emulator/index.ts'
import { profileA } from '../../src/emulator/profile/a.ts'
import { profileB } from '../../src/emulator/profile/b.ts'
import { descriptionOf } from '../emulator/described.ts'
import { open, PROFILES, rowsOf, type Bench, type Fields, type ProfileName } from '../emulator/support.ts'
import { operationsOf, scopeOf, withIds } from './description.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const SESSION_SCOPES: Scope[] = ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read']

async function healthOf(bench: Bench, scopes: Scope[]): Promise<Fields> {
  bench.token = bench.emulator.mintToken(scopes).token
  const { status, body } = await bench.call('GET', '/v1/health')
  expect(status).toBe(200)
  return body
}

async function documentOf(profile: ProfileName): Promise<Fields> {
  return (await descriptionOf(profile)).document
}

function refsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]) => (key === '$ref' ? [String(field)] : refsIn(field)))
}

describe.each(PROFILES)('health and discovery, profile %s', (profile) => {
  it('HLT-01 HLT-02 HLT-03 HLT-04 HLT-05 HLT-06 HLT-07 HLT-16 health reports the scopes of a token', async () => {
    const bench = await open(profile)
    expect(await healthOf(bench, ['artifacts:read'])).toEqual({
      object: 'health',
      status: 'ok',
      version: 'v1',
      scopes: ['artifacts:read'],
      usable: true,
      missing_scopes: [],
    })
    expect(await healthOf(bench, ['cli'])).toEqual({
      object: 'health',
      status: 'ok',
      version: 'v1',
      scopes: ['cli'],
      usable: false,
      missing_scopes: SESSION_SCOPES,
    })
  })

  it('HLT-07 HLT-17 any valid token gets an answer, and none that is usable misses a scope', async () => {
    const bench = await open(profile)
    const kinds: Scope[][] = [...SESSION_SCOPES, 'credentials:write', 'cli'].map((scope) => [scope as Scope])
    for (const scopes of [...kinds, SESSION_SCOPES, ['cli', 'sessions:read'] as Scope[]]) {
      const health = await healthOf(bench, scopes)
      expect(health['scopes']).toEqual(scopes)
      expect(health['usable'] === true).toBe((health['missing_scopes'] as unknown[]).length === 0)
    }
  })

  it('HLT-08 /v1 points to the description', async () => {
    const bench = await open(profile)
    const { status, headers } = await bench.call('GET', '/v1')
    expect([status, headers['link']]).toEqual([200, '</v1/openapi.json>; rel=service-desc'])
  })

  it('HLT-09 HLT-10 the description is OpenAPI 3.1 by a stock validator, and needs no token', async () => {
    const bench = await open(profile)
    for (const token of ['none', bench.emulator.token]) {
      bench.token = token
      const { status, body } = await bench.call('GET', '/v1/openapi.json')
      expect(status).toBe(200)
      const validator = new Validator()
      expect(await validator.validate(body)).toEqual({ valid: true })
      expect(validator.version).toBe('3.1')
    }
  })

  it('HLT-11 describes every route that is there, and none that is not', async () => {
    const bench = await open(profile)
    bench.token = 'none'
    const document = await documentOf(profile)
    const described = operationsOf(document).map(({ method, path }) => ({
      method,
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    }))
    const other = await documentOf(profile === 'a' ? 'b' : 'a')
    const places = new Set(
      [...operationsOf(document), ...operationsOf(other)].flatMap(({ path }) => {
        const place = withIds(path)
        return [place, `${place}/x`, place.slice(0, place.lastIndexOf('/')), `${place}s`]
      }),
    )
    let answered = 0
    for (const place of places) {
      for (const method of METHODS) {
        const reply = await bench.call(method, place === '' ? '/' : place)
        const there = !(reply.status === 404 && reply.text.includes('no route'))
        const promised = described.some((one) => one.method === method && one.pattern.test(place))
        expect([method, place, there]).toEqual([method, place, promised])
        expect(reply.status).not.toBe(405)
        answered += Number(there)
      }
    }
    expect(answered).toBeGreaterThanOrEqual(described.length)
    const ids = operationsOf(document).map(({ operation }) => operation['operationId'])
    expect(new Set(ids).size).toBe(ids.length)
    for (const path of Object.values(bench.details.paths)) expect(document['paths']).toHaveProperty([path])
  })

  it('HLT-11 says nothing of the routes that the emulator adds', async () => {
    expect(JSON.stringify(await documentOf(profile))).not.toContain('_emulator')
  })

  it('HLT-12 HLT-13 names every path, query and header parameter, and every shape it refers to', async () => {
    const { details } = await open(profile)
    const document = await documentOf(profile)
    const { schemas } = document['components'] as { schemas: Fields }
    for (const ref of refsIn(document))
      expect(schemas).toHaveProperty([ref.replace('#/components/schemas/', '')])
    const named = (path: string, method: string): string[] => {
      const found = operationsOf(document).find((one) => one.path === path && one.method === method)
      return rowsOf(found?.operation['parameters'] ?? []).map(({ name }) => String(name))
    }
    for (const { path, operation, method } of operationsOf(document)) {
      for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) expect(named(path, method)).toContain(name)
      for (const { schema } of rowsOf(operation['parameters']))
        expect(Object.keys(schema as Fields).filter((key) => key === 'type' || key === 'enum')).toHaveLength(
          1,
        )
      const { responses } = operation as { responses: Record<string, { content?: Fields }> }
      for (const [status, { content }] of Object.entries(responses))
        expect([path, status, content === undefined]).toEqual([path, status, status === '204'])
    }
    expect(named('/v1/sessions', 'GET')).toEqual(['limit', 'order', 'after', 'metadata', 'status'])
    expect(named('/v1/webhooks', 'GET')).toEqual(['limit', 'after'])
    expect(named(details.paths.message, 'POST')).toEqual(['session_id', details.idempotency.header])
    expect(named('/v1/events', 'GET')).toEqual(['last_event_id', 'Last-Event-ID'])
    const shown = Object.keys(schemas)
    for (const name of [
      'Session',
      'RequiredAction',
      'Turn',
      'Item',
      'Agent',
      'Health',
      'Error',
      'StreamFrame',
    ])
      expect(shown).toContain(name)
  })

  it('HLT-14 names the scope of each operation', async () => {
    const document = await documentOf(profile)
    const scopes = operationsOf(document).map(({ path, method, operation }) => {
      const scope = scopeOf(operation)
      expect(operation['x-required-scope']).toBe(profile === 'a' ? scope : undefined)
      return [`${method} ${path}`, scope]
    })
    const open_ = scopes.filter(([, scope]) => scope === undefined).map(([name]) => String(name))
    expect(open_.toSorted()).toEqual(['GET /v1', 'GET /v1/health', 'GET /v1/openapi.json'])
    expect(Object.fromEntries(scopes)).toMatchObject({
      'GET /v1/events': 'sessions:read',
      'POST /v1/sessions': 'sessions:write',
      'POST /v1/model-credentials': 'credentials:write',
    })
  })

  it('HLT-15 shows one payload for each event name, and every example has the shape that is described', async () => {
    const { details } = await open(profile)
    const description = await descriptionOf(profile)
    const document = description.document as {
      paths: Record<string, { get: { responses: Record<string, { content: Record<string, Fields> }> } }>
      webhooks: Record<string, { post: { requestBody: { content: Record<string, Fields> } } }>
    }
    for (const path of ['/v1/events', details.paths.sessionStream]) {
      const content = document.paths[path]?.get.responses['200']?.content['text/event-stream']
      const examples = content?.['examples'] as Record<string, { value: Fields }>
      expect(Object.keys(examples).toSorted()).toEqual(
        [...PERSISTED_EVENTS, ...details.stream.transients, details.stream.stop.name].toSorted(),
      )
      for (const [name, { value }] of Object.entries(examples)) {
        expect(value['type']).toBe(name)
        expect(description.fits('StreamFrame', value)).toEqual([])
      }
    }
    expect(Object.keys(document.webhooks)).toEqual([...WEBHOOK_EVENTS])
    for (const { post } of Object.values(document.webhooks)) {
      const example = post.requestBody.content['application/json']?.['example']
      expect(description.fits('WebhookDelivery', example)).toEqual([])
      expect(description.fits('WebhookDelivery', { ...(example as Fields), data: 7 })).not.toEqual([])
    }
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
