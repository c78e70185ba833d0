import { HTTP, type CloudEvent } from 'cloudevents'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { NetworkFault, type NetworkFaultKind } from '../../src/std/errors.ts'
import type { StoredFact } from '../../src/core/fact.ts'
import type { HandlerSpec } from '../../src/core/handler.ts'
import type { HttpReply } from '../../src/std/ports.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { createHttpTarget } from '../../src/sidecar/deliver/targets/http.ts'
import type { Verdict } from '../../src/sidecar/deliver/targets/verdict.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { answer, fakeHttp, seededRandom } from '../support/ports.ts'
import { SPEC } from './world.ts'

const SECRETS = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']
const session = { title: 'One', metadata: { team: 'a' }, status: 'idle' }

function target(
  spec: Partial<HandlerSpec> = {},
  reply: () => HttpReply | Promise<HttpReply> = () => answer(204),
  secrets = SECRETS,
) {
  const { http, requests } = fakeHttp(reply)
  const clock = new VirtualClock(Date.now())
  const made = createHttpTarget(
    { ...SPEC, ...spec },
    { url: 'http://app/events', secrets: { current: secrets } },
    { http, clock, tracer: plainTracer(seededRandom()) },
    '/sidecar',
  )
  const send = (facts: readonly StoredFact[], attempt = 1): Promise<Verdict> => {
    const batch = facts.map((fact) => ({ fact, attempt, session }))
    return new Promise((resolve) => made.send(batch, resolve))
  }
  return { requests, clock, send, abort: made.abort }
}

const state: StoredFact = {
  ...turnFact('turn.completed', 'trn_1', 'ses_1', { seen: { stream: 5, webhook: 9 } }),
  pos: 1,
}
const transcript: StoredFact = {
  ...frameFact(7, 'ses_1', {
    body: '{"type":"agent.message","seq":7,"payload":{"text":"hi","n":12345678901234567890},"internal_type":"x"}',
  }),
  pos: 2,
}

describe('a callback', () => {
  it('of a state fact has the shape that is promised', async () => {
    const { requests, send } = target()
    await send([state], 3)
    expect(JSON.parse(String(requests[0]?.body))).toEqual({
      type: 'turn.completed',
      timestamp: new Date(state.at).toISOString(),
      id: state.id,
      session_id: 'ses_1',
      data: {
        turn: { id: 'trn_1', status: 'completed' },
        session: { title: null, metadata: {}, status: 'idle' },
      },
      delivery: { attempt: 3, handler: 'app' },
      seen: { stream: 5, webhook: 9 },
    })
  })

  it('is ended at a stop, and none begins afterwards', async () => {
    const { requests, send, abort } = target({}, () => new Promise(() => undefined))
    void send([state])
    void send([transcript])
    expect(requests.map((request) => request.signal?.aborted)).toEqual([false, false])
    abort()
    expect(await send([state])).toEqual({ kind: 'aborted' })
    expect(requests.map((request) => request.signal?.aborted)).toEqual([true, true])
  })

  it('of a frame carries it with every digit, and what we know of its session', async () => {
    const { requests, send } = target()
    await send([transcript])
    const body = String(requests[0]?.body)
    expect(JSON.parse(body)).toMatchObject({
      data: { payload: { text: 'hi' }, internal_type: 'x', seq: 7, session },
    })
    expect(body).toContain('12345678901234567890')
  })

  it('gives a seq that a double would round as text', async () => {
    const { requests, send } = target()
    await send([{ ...frameFact('9007199254740993'), pos: 3 }])
    expect(JSON.parse(String(requests[0]?.body))).toMatchObject({ data: { seq: '9007199254740993' } })
  })

  it('is signed with every secret, under the id of the fact and the time of the attempt', async () => {
    const { requests, send, clock } = target()
    await send([state])
    await clock.advance(60_000)
    await send([state], 2)
    for (const request of requests) {
      expect(request.headers['webhook-id']).toBe(state.id)
      expect(request.headers['webhook-id']).toMatch(/^[A-Za-z0-9_-]+$/)
      for (const secret of SECRETS) {
        expect(new Webhook(secret).verify(String(request.body), request.headers)).toMatchObject({
          id: state.id,
        })
      }
    }
    const [first, second] = requests.map(({ headers }) => Number(headers['webhook-timestamp']))
    expect((second ?? 0) - (first ?? 0)).toBe(60)
  })

  it('without secrets is not signed', async () => {
    const { requests, send } = target({}, undefined, [])
    await send([state])
    expect(requests[0]?.headers).not.toHaveProperty('webhook-signature')
  })

  it('is one CloudEvent with format: cloudevents', async () => {
    const { requests, send } = target({ format: 'cloudevents' })
    await send([state])
    const [request] = requests
    const event = HTTP.toEvent({
      headers: request?.headers ?? {},
      body: String(request?.body),
    }) as CloudEvent<Record<string, unknown>>
    expect(event.validate()).toBe(true)
    expect(event).toMatchObject({
      id: state.id,
      type: 'turn.completed',
      subject: 'ses_1',
      specversion: '1.0',
      source: '/sidecar',
    })
    expect(event.data).toMatchObject({
      session_id: 'ses_1',
      delivery: { attempt: 1, handler: 'app' },
      seen: { stream: 5 },
    })
  })

  it('of a batch is a list whose elements keep their ids, under an id of its own', async () => {
    const { requests, send } = target({ batch: { max: 10, wait: 0 } })
    await send([state, transcript])
    await send([state, transcript], 2)
    const [first, second] = requests
    expect((JSON.parse(String(first?.body)) as { id: string }[]).map(({ id }) => id)).toEqual([
      state.id,
      transcript.id,
    ])
    expect(first?.headers['webhook-id']).toMatch(/^bat_[A-Za-z0-9_-]+$/)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    await send([transcript])
    expect(requests[2]?.headers['webhook-id']).not.toBe(first?.headers['webhook-id'])
  })

  it('of a batch of CloudEvents has the content type of a batch', async () => {
    const { requests, send } = target({ format: 'cloudevents', batch: { max: 10, wait: 0 } })
    await send([state, transcript])
    const [request] = requests
    const events = HTTP.toEvent({
      headers: request?.headers ?? {},
      body: String(request?.body),
    }) as CloudEvent[]
    expect(events.map((event) => [event.id, event.validate()])).toEqual([
      [state.id, true],
      [transcript.id, true],
    ])
  })

  it.each([
    ['an answer of 500', 500, 'broken: no such table', 'broken: no such table'],
    ['a verdict', 200, '{"verdict":"dead","why":"late"}', '{"verdict":"dead","why":"late"}'],
    ['a long answer', 400, 'x'.repeat(5000), `${'x'.repeat(1024)}…`],
    ['nothing', 500, '', undefined],
    ['an answer that took the fact', 200, 'thanks', undefined],
    [
      'an answer with secrets',
      500,
      `authorization: Bearer abc.DEF-1 secret=${SECRETS[0]} token svc_pat_12ab {"auth":"Basic QWxh="}`,
      'authorization: Bearer [redacted] secret=whsec_[redacted] token svc_pat_[redacted] {"auth":"Basic [redacted]"}',
    ],
  ])('stores the beginning of %s if the fact was not accepted', async (_what, status, body, kept) => {
    const { send } = target({}, () => answer(status, body))
    const verdict = await send([state])
    expect('answer' in verdict ? verdict.answer : undefined).toBe(kept)
  })

  // [fault callback-4]
  it('reads 64 KiB of the answer at the most', async () => {
    const { requests, send } = target()
    await send([state])
    expect(requests[0]).toMatchObject({ maxBody: 65_536, timeout: 15_000, url: 'http://app/events' })
  })
})

describe('what the handler answers', () => {
  it.each([
    [200, '', 'delivered'],
    [204, '', 'delivered'],
    [299, 'thanks', 'delivered'],
    [200, '{"verdict":"retry"}', 'retry'],
    [202, '{"verdict":"dead","why":"x"}', 'dead'],
    [200, '\uFEFF{"verdict":"dead"}', 'dead'],
    [200, '{"verdict":"maybe"}', 'delivered'],
    [200, '["verdict","dead"]', 'delivered'],
    [200, '{"verdict":"dead"', 'delivered'],
    [500, '{"verdict":"dead"}', 'retry'],
    [410, '', 'gone'],
    [301, '', 'retry'],
    [307, '', 'retry'],
    [400, '', 'retry'],
    [404, '', 'retry'],
    [429, '', 'retry'],
    [503, '', 'retry'],
  ])('%i %s means %s', async (status, body, kind) => {
    expect(await target({}, () => answer(status, body)).send([state])).toMatchObject({ kind })
  })

  it.each([
    ['7', 7000],
    ['0', 0],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', 0],
    ['-1', 0],
    ['999999999', 86_400_000],
  ])('Retry-After %o is a floor of %i ms', async (header, floor) => {
    const reply = answer(503, '', { 'retry-after': header })
    expect(await target({}, () => reply).send([state])).toMatchObject({ kind: 'retry', floor })
  })

  it.each([
    ['unreachable', { kind: 'unreachable', reset: false }],
    ['reset', { kind: 'unreachable', reset: true }],
    ['unreadable', { kind: 'retry' }],
    ['other', { kind: 'retry' }],
    ['timeout', { kind: 'retry' }],
  ] as [NetworkFaultKind, object][])('a connection that is %s', async (kind, verdict) => {
    const failing = target({}, () => Promise.reject(new NetworkFault(kind, kind)))
    expect(await failing.send([state])).toMatchObject(verdict)
  })
})
