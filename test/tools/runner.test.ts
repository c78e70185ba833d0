import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { NetworkFault } from '../../src/std/errors.ts'
import { parseJson, type Json } from '../../src/std/json.ts'
import type { HttpReply } from '../../src/std/ports.ts'
import type { ToolCall } from '../../src/core/tool.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { createHttpRunner, createModuleRunner } from '../../src/sidecar/tools/targets.ts'
import { VirtualClock } from '../support/clock.ts'
import { answer, fakeHttp, seededRandom } from '../support/ports.ts'
import { output, SPEC, toolWorld } from './world.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const MIB = 1024 * 1024
const signal = new AbortController().signal
const TRACER = plainTracer(seededRandom())
const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

const CALL: ToolCall = {
  callId: 'call_1',
  name: 'lookup',
  arguments: { order: 42 },
  sessionId: 'ses_1',
  turnId: 'trn_1',
  createdAt: 1,
  expiresAt: 2,
  attempt: 1,
  uncertain: false,
  session: { title: 'One', metadata: { team: 'a' }, status: 'working' },
}

function overHttp(reply: () => HttpReply | Promise<HttpReply>) {
  const { http, requests } = fakeHttp(reply)
  const clock = new VirtualClock(Date.now())
  const run = createHttpRunner(
    SPEC,
    { url: 'http://tool/', secrets: { current: [SECRET] } },
    { http, clock, tracer: TRACER },
  )
  return { requests, run }
}

describe('a tool over HTTP', () => {
  it('is asked as a Standard Webhook with the call as its idempotency key', async () => {
    const { requests, run } = overHttp(() => answer(200, '42'))
    await run(CALL, signal)
    const [request] = requests
    expect(request?.headers).toMatchObject({ 'idempotency-key': 'call_1', 'webhook-id': 'call_1' })
    expect(request?.headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    expect(new Webhook(SECRET).verify(String(request?.body), request?.headers ?? {})).toEqual({
      type: 'tool.call',
      call_id: 'call_1',
      name: 'lookup',
      arguments: { order: 42 },
      session_id: 'ses_1',
      turn_id: 'trn_1',
      created_at: 1,
      expires_at: 2,
      attempt: 1,
      uncertain: false,
      session: { title: 'One', metadata: { team: 'a' } },
    })
  })

  it('with an id that no header can carry is asked all the same, and no two ids share a key', async () => {
    const { requests, run } = overHttp(() => answer(200, '42'))
    const long = 'x'.repeat(300)
    for (const callId of ['half a pair \ud800', 'a b', 'é'.repeat(200), `${long}1`, `${long}2`])
      expect((await run({ ...CALL, callId }, signal)).kind).toBe('output')
    const keys = requests.map(({ headers }) => headers['idempotency-key'] ?? '')
    expect(keys.filter((key) => !/^[\x21-\x7e]{1,255}$/.test(key))).toEqual([])
    expect(new Set(keys).size).toBe(5)
  })

  it('has one idempotency key over all attempts', async () => {
    const { requests, run } = overHttp(() => answer(500))
    await run(CALL, signal)
    await run({ ...CALL, attempt: 2, uncertain: true }, signal)
    expect(requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['call_1', 'call_1'])
  })

  it.each([
    ['200 with a body: byte for byte', answer(200, ' {"a": 1}\n'), output(' {"a": 1}\n')],
    ['200 with none', answer(200), output('(no output)')],
    ['204', answer(204), output('(no output)')],
    ['202: later', answer(202, 'ignored'), { kind: 'deferred', status: 202 }],
    [
      '401',
      answer(401, 'why'),
      {
        kind: 'failed',
        error: 'the tool answered 401: give it the secret of the configuration',
        status: 401,
        retryAfter: 0,
      },
    ],
    ['400', answer(400, 'why'), { kind: 'rejected', error: 'the tool answered 400', status: 400 }],
    ['422', answer(422, 'why'), { kind: 'rejected', error: 'the tool answered 422', status: 422 }],
    [
      '500',
      answer(500, 'stack trace'),
      { kind: 'failed', error: 'the tool answered 500', status: 500, retryAfter: 0 },
    ],
    [
      '302: not followed',
      answer(302),
      { kind: 'failed', error: 'the tool answered 302', status: 302, retryAfter: 0 },
    ],
    [
      '503 and when',
      answer(503, '', { 'retry-after': '7' }),
      { kind: 'failed', error: 'the tool answered 503', status: 503, retryAfter: 7000 },
    ],
    [
      '201: nothing that the protocol knows',
      answer(201, 'x'),
      { kind: 'failed', error: 'the tool answered 201', status: 201, retryAfter: 0 },
    ],
  ])('answers %s', async (_, reply, result) => {
    expect(await overHttp(() => reply).run(CALL, signal)).toEqual(result)
  })

  it('may not answer more than the service takes, also when JSON makes it so', async () => {
    const small = 'x'.repeat(MIB - 8192)
    expect(await overHttp(() => answer(200, small)).run(CALL, signal)).toEqual(output(small))
    for (const reply of [
      answer(200, 'x'.repeat(MIB)),
      answer(200, '\u0001'.repeat(MIB / 4)),
      { ...answer(200, 'x'), truncated: true },
    ]) {
      expect(await overHttp(() => reply).run(CALL, signal)).toMatchObject({ kind: 'rejected' })
    }
  })

  it.each([
    ['unreachable', 'no'],
    ['reset', 'unknown'],
    ['unreadable', 'unknown'],
    ['timeout', 'unknown'],
  ] as const)('that is %s has perhaps run: %s', async (kind, ran) => {
    const { run } = overHttp(() => Promise.reject(new NetworkFault(kind, kind)))
    expect(await run(CALL, signal)).toMatchObject({ kind: 'failed', ran })
  })
})

describe('a tool in this process', () => {
  // [fault tool-8]
  it('gets numbers as JSON.parse gives them, however long they are', async () => {
    const seen: unknown[] = []
    const keep = async (call: ToolCall) => output(String(seen.push(call.arguments)))
    const given = parseJson('{"amount":12345678901234567890}') as Json
    await createModuleRunner(keep, silent, TRACER)({ ...CALL, arguments: given }, signal)
    expect(seen).toEqual([{ amount: 12345678901234567000 }])
  })

  it('that throws a secret shows it neither to the model nor in the ledger', async () => {
    const world = toolWorld()
    const run = createModuleRunner(() => Promise.reject(new TypeError('password=hunter2')), silent, TRACER)
    world.run = run
    await world.found()
    await world.clock.advance(30_000)
    expect(world.service.answers).toHaveLength(1)
    expect(
      JSON.stringify([
        world.service.answers,
        await world.call(),
        (await world.store.read.facts({ limit: 9, order: 'asc' })).rows,
      ]),
    ).not.toContain('hunter2')
    expect(JSON.stringify(world.log.lines)).not.toContain('hunter2')
  })

  it('may not return more than the service takes', async () => {
    const run = createModuleRunner(async () => output('x'.repeat(MIB)), silent, TRACER)
    expect(await run(CALL, signal)).toMatchObject({ kind: 'rejected' })
  })
})
