import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isObject, type JsonObject } from '../../src/std/json.ts'
import { createRelay } from '../../src/sidecar/admin/relay/relay.ts'
import { startAdmin, type Reply, type Running } from './running.ts'
import {
  actionRaw,
  callOf,
  clock,
  frameFact,
  memoryLog,
  readingOf,
  sessionRaw,
  acknowledgeFirst,
  turnFact,
  turnRaw,
  relayLedger,
} from './seed.ts'

let running: Running
let document: JsonObject
let deadId = ''

beforeAll(async () => {
  const relay = createRelay({
    store: () => running.store.read,
    clock,
    log: memoryLog(),
    observer: relayLedger(),
  })
  running = await startAdmin({
    relay,
    async seed(store) {
      await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
      const turn = turnRaw('turn_1', 's-a')
      const session = sessionRaw('s-a', {
        status: 'requires_action',
        required_actions: [actionRaw('call_1')],
      })
      const calls = [callOf('call_1', 's-a')]
      const committed = await store.log.commit({
        readings: [readingOf(session, { turns: [turn], calls, facts: [turnFact('turn.settled', turn)] })],
      })
      await acknowledgeFirst(store, committed, 'app', 'dead')
      await store.log.commit({ facts: [frameFact('9007199254740993', 's-a')] })
      deadId = (await store.read.deliveries({ limit: 1, status: 'dead' })).rows[0]?.id ?? ''
    },
  })
  document = (await running.get('/openapi.json')).json
})
afterAll(() => running.stop())

/** Every operation of the contract, with a request that succeeds. */
const REQUESTS: Record<string, () => Promise<Reply>> = {
  'get /livez': () => running.get('/livez'),
  'get /readyz': () => running.get('/readyz?verbose'),
  'get /startupz': () => running.get('/startupz'),
  'get /metrics': () => running.get('/metrics'),
  'get /openapi.json': () => running.get('/openapi.json'),
  'get /v1/openapi.json': () => running.get('/v1/openapi.json'),
  'get /v1/events': () => openingOf('/v1/events'),
  'get /v1/sessions/{session_id}/events': () => openingOf('/v1/sessions/s-a/events'),
  'get /api/status': () => running.get('/api/status'),
  'get /api/attention': () => running.get('/api/attention'),
  'get /api/events': () => running.get('/api/events'),
  'get /api/sessions': () => running.get('/api/sessions'),
  'get /api/sessions/{id}': () => running.get('/api/sessions/s-a'),
  'get /api/calls': () => running.get('/api/calls'),
  'get /api/deliveries': () => running.get('/api/deliveries'),
  'get /api/deliveries/{id}': () => running.get(`/api/deliveries/${deadId}`),
  'get /api/handlers': () => running.get('/api/handlers'),
  'get /api/tools': () => running.get('/api/tools'),
  'get /api/turns': () => running.get('/api/turns'),
  'get /api/actions': () => running.get('/api/actions'),
  'post /api/deliveries/{id}/retry': () => running.post(`/api/deliveries/${deadId}/retry`),
  'post /api/deliveries/retry': () => running.post('/api/deliveries/retry', { status: 'dead' }),
  'post /api/replay': () => running.post('/api/replay', { handler: 'app', from: '1' }),
  'post /api/handlers/{name}/test': () => running.post('/api/handlers/app/test', { type: 'turn.failed' }),
  'post /api/handlers/{name}/pause': () => running.post('/api/handlers/app/pause'),
  'post /api/handlers/{name}/resume': () => running.post('/api/handlers/app/resume'),
  'post /api/calls/{call_id}/answer': () => running.post('/api/calls/call_1/answer', { output: 'x' }),
}

it('describes exactly the routes of the contract', () => {
  expect(document['openapi']).toBe('3.1.0')
  expect(document['info']).toMatchObject({ version: '1.2.3' })
  expect(
    operations()
      .map(({ key }) => key)
      .sort(),
  ).toEqual(Object.keys(REQUESTS).sort())
})

it('is valid OpenAPI 3.1 for a public validator', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(document))).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
  const broken = { ...structuredClone(document), paths: { '/x': { get: { responses: 'none' } } } }
  expect(await new Validator().validate(broken)).toMatchObject({ valid: false })
})

it('describes each path parameter, and gives each operation a name of its own', () => {
  const names = operations().map(({ operation }) => operation['operationId'])
  expect(new Set(names).size).toBe(names.length)
  for (const { key, operation } of operations()) {
    const described = listOf(operation['parameters']).filter((parameter) => parameter['in'] === 'path')
    const named = [...key.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    expect(described.map(({ name }) => name)).toEqual(named)
    expect(operation['summary']).toMatch(/\.$/)
  }
})

it('has every schema that it refers to, and refers to every schema that it has', () => {
  const schemas = Object.keys(objectAt(document, 'components', 'schemas'))
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target)
  expect(new Set(references)).toEqual(new Set(schemas.map((name) => `#/components/schemas/${name}`)))
})

it.each(Object.keys(REQUESTS))('describes the answers of %s correctly', async (key) => {
  const reply = await REQUESTS[key]?.()
  const operation = operations().find((one) => one.key === key)?.operation ?? {}
  const content = objectAt(operation, 'responses', String(reply?.status), 'content')
  const [type = ''] = Object.keys(content)
  expect(reply?.headers['content-type']).toMatch(new RegExp(`^${type}(;|$)`))
  const answered: unknown = type === 'application/json' ? reply?.json : reply?.text
  expect(faultsOf(objectAt(content, type, 'schema'), answered)).toEqual([])
})

it('describes problems correctly', async () => {
  const schema = { $ref: '#/components/schemas/Problem' }
  for (const path of ['/api/events?limit=0', '/api/sessions/unknown', '/nowhere']) {
    const reply = await running.get(path)
    expect(faultsOf(schema, reply.json)).toEqual([])
    expect(reply.json).toMatchObject({ status: reply.status, instance: path.replace(/\?.*/, '') })
  }
})

it('requires a token only when one is configured', async () => {
  expect(operations().every(({ operation }) => listOf(operation['security']).length === 0)).toBe(true)
  const guarded = await startAdmin({ token: () => 'secret' })
  try {
    document = (await guarded.get('/openapi.json', { authorization: 'Bearer secret' })).json
    const free = operations().filter(({ operation }) => listOf(operation['security']).length === 0)
    expect(free.map(({ key }) => key).sort()).toEqual([
      'get /livez',
      'get /metrics',
      'get /readyz',
      'get /startupz',
    ])
  } finally {
    await guarded.stop()
  }
})

/** What a stream says first; it has no end of its own. */
async function openingOf(path: string): Promise<Reply> {
  const answer = await fetch(running.base + path)
  const reader = answer.body?.getReader()
  const text = new TextDecoder().decode((await reader?.read())?.value)
  await reader?.cancel()
  return { status: answer.status, headers: Object.fromEntries(answer.headers), text, json: {} }
}

function operations(): { key: string; operation: JsonObject }[] {
  return Object.entries(objectAt(document, 'paths')).flatMap(([path, methods]) =>
    Object.entries(isObject(methods) ? methods : {}).flatMap(([method, operation]) =>
      isObject(operation) ? [{ key: `${method} ${path}`, operation }] : [],
    ),
  )
}

function faultsOf(schema: JsonObject, value: unknown): unknown[] {
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true } })
  const validate = ajv.compile({ ...schema, components: document['components'] })
  return validate(value) ? [] : (validate.errors ?? [])
}

function objectAt(value: JsonObject, ...path: string[]): JsonObject {
  let current = value
  for (const key of path) {
    const next = current[key]
    if (!isObject(next)) throw new Error(`no object at ${path.join('.')}`)
    current = next
  }
  return current
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
