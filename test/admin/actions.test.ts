import { afterEach, beforeEach, expect, it } from 'vitest'
import { ActionRefused } from '../../src/sidecar/admin/actions.ts'
import { frameFact, acknowledgeFirst, text } from './seed.ts'
import { dataOf, startAdmin, type Running } from './running.ts'

let running: Running

beforeEach(async () => {
  running = await startAdmin({
    async seed(store) {
      await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
      const committed = await store.log.commit({ facts: [frameFact('1', 's-a'), frameFact('2', 's-b')] })
      await acknowledgeFirst(store, committed, 'app', 'dead')
    },
  })
})
afterEach(() => running.stop())

const idOf = async (status: string) =>
  text(dataOf(await running.get(`/api/deliveries?status=${status}`))[0]?.['id'])

it('retries one delivery that is dead, and refuses one that is pending or unknown', async () => {
  const dead = await idOf('dead')
  const reply = await running.post(`/api/deliveries/${dead}/retry`)
  expect([reply.status, reply.json]).toEqual([202, { count: 3, dry_run: false }])
  expect(running.asked).toEqual([['retryDelivery', dead]])
  expect((await running.post(`/api/deliveries/${await idOf('pending')}/retry`)).status).toBe(409)
  expect((await running.post('/api/deliveries/dlv_9_9/retry')).status).toBe(404)
})

it('retries dead letters by handler and time, and only counts them on a dry run', async () => {
  const since = '2026-11-21T05:00:00Z'
  const reply = await running.post('/api/deliveries/retry', {
    status: 'dead',
    handler: 'app',
    since,
    dry_run: true,
  })
  expect([reply.status, reply.json]).toEqual([202, { count: 3, dry_run: true }])
  await running.post('/api/deliveries/retry')
  await running.post('/api/deliveries/retry', { since: 1000 })
  expect(running.asked).toEqual([
    ['retryDeliveries', { handler: 'app', since: Date.parse(since), dryRun: true }],
    ['retryDeliveries', { dryRun: false }],
    ['retryDeliveries', { dryRun: false, since: 1000 }],
  ])
})

it('replays from a seq or a time', async () => {
  const reply = await running.post('/api/replay', { handler: 'app', from: '9007199254740993' })
  expect([reply.status, reply.json]).toEqual([202, { handler: 'app', count: 3 }])
  await running.post('/api/replay', { handler: 'app', from: 12 })
  await running.post('/api/replay', { handler: 'app', from: '2026-11-21' })
  expect(running.asked).toEqual([
    ['replay', { handler: 'app', from: { seq: '9007199254740993' } }],
    ['replay', { handler: 'app', from: { seq: '12' } }],
    ['replay', { handler: 'app', from: { at: Date.parse('2026-11-21') } }],
  ])
  const bad = await running.post('/api/replay', { handler: 'app', from: 'yesterday' })
  expect([bad.status, bad.json['detail']]).toEqual([400, expect.stringMatching(/^from: a point in time/)])
})

it('pauses and resumes a handler, and names the nearest when none has that name', async () => {
  expect((await running.post('/api/handlers/app/pause', {})).json).toEqual({ handler: 'app', paused: true })
  expect((await running.post('/api/handlers/app/resume')).json).toEqual({ handler: 'app', paused: false })
  expect(running.asked).toEqual([
    ['pauseHandler', 'app'],
    ['resumeHandler', 'app'],
  ])
  const reply = await running.post('/api/handlers/audits/pause')
  expect([reply.status, reply.json['detail']]).toEqual([
    404,
    'no handler has that name. Did you mean "audit"?',
  ])
})

it('passes on the answer byte for byte, or the request for the fixed error', async () => {
  const output = '{"a": 1}\n\u0000ü'
  const reply = await running.post('/api/calls/call%2F1/answer', { output })
  expect([reply.status, reply.json]).toEqual([202, { call_id: 'call/1', answer: 'output' }])
  await running.post('/api/calls/call_2/answer', { error: true })
  expect(running.asked).toEqual([
    ['answerCall', 'call/1', { output }],
    ['answerCall', 'call_2', { error: true }],
  ])
})

it.each([
  { body: {} },
  { body: { output: 'x', error: true } },
  { body: { error: 'boom' } },
  { body: { output: 5 } },
  { body: [] },
  { body: 'not json' },
  { body: { outputs: 'x' } },
])('refuses the answer $body', async ({ body }) => {
  const reply = await running.post('/api/calls/call_1/answer', body)
  expect([reply.status, reply.headers['content-type']]).toEqual([400, 'application/problem+json'])
  expect(running.asked).toEqual([])
})

it('answers with the reason of a refused action, and without the message of any other error', async () => {
  const secretive = await startAdmin({
    actions: {
      retryDelivery: async () => ({ count: 0 }),
      // The error of a library may have a status of its own.
      retryDeliveries: async () =>
        Promise.reject(Object.assign(new Error('password=hunter2'), { statusCode: 400 })),
      replay: async () => ({ count: 0 }),
      pauseHandler: async () => undefined,
      resumeHandler: async () => undefined,
      answerCall: async () => Promise.reject(new ActionRefused('conflict', 'the call waits for no answer')),
      tools: () => [],
      testHandler: () => Promise.reject(new Error('nothing is tried here')),
      handlerNames: () => [],
      handlers: async () => [],
    },
  })
  try {
    const conflict = await secretive.post('/api/calls/c/answer', { output: '' })
    expect([conflict.status, conflict.json['detail']]).toEqual([409, 'the call waits for no answer'])
    const broken = await secretive.post('/api/deliveries/retry')
    expect(broken.status).toBe(500)
    expect(broken.text).not.toContain('hunter2')
    expect(secretive.log.lines).toMatchObject([
      { level: 'error', details: { path: '/api/deliveries/retry' } },
    ])
  } finally {
    await secretive.stop()
  }
})

it('refuses a body that is too long or no JSON', async () => {
  const long = await running.post('/api/calls/c/answer', { output: 'x'.repeat(3 * 1024 * 1024) })
  expect([long.status, long.headers['content-type']]).toEqual([413, 'application/problem+json'])
  const text = await running.post('/api/calls/c/answer', 'hello', { 'content-type': 'text/plain' })
  expect([text.status, text.headers['content-type']]).toEqual([415, 'application/problem+json'])
})

it('sends a test fact to a handler; its type and data are optional', async () => {
  const reply = await running.post('/api/handlers/app/test')
  expect([reply.status, reply.json]).toEqual([
    200,
    {
      handler: 'app',
      id: 'evt_test_1',
      type: 'turn.settled',
      wanted: true,
      outcome: 'delivered',
      status: 204,
      error: null,
      answer: null,
      ms: 3,
    },
  ])
  await running.post('/api/handlers/app/test', { type: 'agent.message', data: { payload: { n: 1 } } })
  expect(running.asked).toEqual([
    ['testHandler', 'app', { type: 'turn.settled', data: {} }],
    ['testHandler', 'app', { type: 'agent.message', data: { payload: { n: 1 } } }],
  ])
  expect((await running.post('/api/handlers/app/test', { type: 'a b' })).status).toBe(400)
  expect((await running.post('/api/handlers/app/test', { data: [] })).status).toBe(400)
  expect((await running.post('/api/handlers/unknown/test')).status).toBe(404)
})
