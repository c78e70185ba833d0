import { Ajv2020 } from 'ajv/dist/2020.js'
import { StoreError } from '../../src/core/store-error.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { READERS, type Relay } from '../../src/sidecar/admin/relay/relay.ts'
import { ProblemDocument } from '../../src/sidecar/admin/openapi.ts'
import { Problem } from '../../src/sidecar/admin/problem.ts'
import { exchangeRaw } from './raw.ts'
import { send, startAdmin, type Reply, type Running } from './running.ts'

let running: Running
let guarded: Running

/** Every place is taken. */
const fullRelay: Relay = {
  factsAdded: () => undefined,
  cursorMoved: () => undefined,
  transient: () => undefined,
  woken: () => undefined,
  missed: () => undefined,
  population: () => undefined,
  transientShared: () => undefined,
  checkRoom() {
    throw new Problem('rate_limit_exceeded', `${READERS} streams are open`, {
      headers: { 'retry-after': '5' },
    })
  },
  open: () => undefined,
  close: () => undefined,
}

beforeAll(async () => {
  running = await startAdmin({
    relay: fullRelay,
    ready: () => ({ ok: false, checks: [{ name: 'not draining', ok: false }] }),
    status() {
      throw new Error('secret detail')
    },
  })
  guarded = await startAdmin({ token: () => 'token' })
})
afterAll(() => Promise.all([running.stop(), guarded.stop()]))

const json = { 'content-type': 'application/json' }

/** One request for each refusal of the admin listener. */
const REFUSALS: [number, string, () => Promise<Reply>][] = [
  [400, 'a query that is none', () => running.get('/api/events?limit=0')],
  [400, 'a body that is not JSON', () => running.post('/api/replay', '{', json)],
  [400, 'a body of another shape', () => running.post('/api/replay', { unknown: 1 })],
  [401, 'no token', () => guarded.get('/api/status')],
  [403, 'a page of another origin', () => running.get('/api/status', { origin: 'http://evil.example' })],
  [404, 'no such thing', () => running.get('/api/sessions/unknown')],
  [404, 'no such path', () => running.get('/nowhere')],
  [400, 'a path that cannot be decoded', () => running.get('/api/sessions/%')],
  [405, 'another method', () => running.post('/api/status')],
  [413, 'a body that is too long', () => running.post('/api/replay', 'x'.repeat(3 * 1024 * 1024), json)],
  [415, 'a body of another type', () => running.post('/api/replay', 'x', { 'content-type': 'text/plain' })],
  [429, 'too many streams', () => running.get('/v1/events')],
  [500, 'our own failure', () => running.get('/api/status')],
  [503, 'not ready', () => running.get('/readyz')],
]

test.for(REFUSALS)('%i, %s, is a problem document', async ([status, , ask]) => {
  const reply = await ask()
  expect(reply.status).toBe(status)
  expect(reply.headers['content-type']).toBe('application/problem+json')
  expect(faultsOf(reply.json)).toEqual([])
  expect(reply.json['status']).toBe(status)
  expect(reply.text).not.toContain('secret detail')
})

test.for([
  ['no HTTP at all', 'hello\r\n\r\n', 400],
  ['endless headers', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
] as const)('%s is answered with a problem document too', async ([, bytes, status]) => {
  const answer = await exchangeRaw(Number(new URL(running.base).port), bytes)
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(head).toContain('Content-Type: application/problem+json')
  const document: unknown = JSON.parse(body)
  expect(faultsOf(document)).toEqual([])
  expect(document).toMatchObject({ status })
})

test('below /v1 an error has the form that clients of the service expect', async () => {
  const reply = await send(`${running.base}/v1/events`, { method: 'GET' })
  expect(reply.json['error']).toMatchObject({ code: 'rate_limit_exceeded' })
  expect(reply.headers['retry-after']).toBe('5')
})

function faultsOf(document: unknown): unknown[] {
  const validate = new Ajv2020({ strict: false }).compile(ProblemDocument.schema)
  return validate(document) ? [] : (validate.errors ?? [])
}

test('a database that is unreachable is shown with its cause, and is no failure of the sidecar', async () => {
  const unreachable = await startAdmin({
    status() {
      throw new StoreError('unreachable', new Error('connect ECONNREFUSED 127.0.0.1:5432'))
    },
  })
  try {
    const { status, text } = await unreachable.get('/api/status')
    expect([status, JSON.parse(text)]).toEqual([
      503,
      expect.objectContaining({
        detail: 'the database of the store cannot be reached (connect ECONNREFUSED 127.0.0.1:5432)',
      }),
    ])
  } finally {
    await unreachable.stop()
  }
})
