import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import {
  CallbackRejected,
  isFact,
  verifyCallback,
  verifyCallbacks,
  verifyToolCall,
  type VerifyOptions,
} from '../../src/index.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const NOW = 1_763_701_200_000
const BODY = '{"type":"turn.settled","id":"evt_1","data":{"text":"naïve ☂"}}'

function signed(
  more: { id?: string; at?: number; body?: string; secret?: string } = {},
): VerifyOptions & { headers: Record<string, string> } {
  const { id = 'evt_1', at = NOW, body = BODY, secret = SECRET } = more
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
  }
  return { headers, body, secrets: [SECRET], now: NOW }
}

const without = (name: string) => {
  const options = signed()
  const headers = Object.fromEntries(Object.entries(options.headers).filter(([key]) => key !== name))
  return { ...options, headers }
}
const withHeader = (name: string, change: (value: string) => string) => {
  const options = signed()
  return {
    ...options,
    headers: Object.assign(options.headers, { [name]: change(options.headers[name] ?? '') }),
  }
}

describe('verifyCallback', () => {
  it('returns the event of a genuine callback, however its headers and body are given', () => {
    const { headers, ...rest } = signed()
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    )
    const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
    for (const given of [headers, upper, listed, new Headers(headers)]) {
      expect(verifyCallback({ ...rest, headers: given })).toMatchObject({ type: 'turn.settled', id: 'evt_1' })
    }
    expect(verifyCallback({ ...rest, headers, body: new TextEncoder().encode(BODY) })).toEqual(
      JSON.parse(BODY),
    )
  })

  it('returns what isFact narrows to one type, and to no other', () => {
    const body = '{"type":"session.failed","id":"evt_1","data":{"item":{"id":"item_1"}}}'
    const event = verifyCallback(signed({ body }))
    expect(isFact(event, 'turn.settled')).toBe(false)
    expect(isFact(event, 'session.failed') ? event.data.item : null).toEqual({ id: 'item_1' })
  })

  it('takes any of several secrets, and any of several signatures', () => {
    expect(verifyCallback({ ...signed({ secret: OTHER }), secrets: [SECRET, OTHER] }).id).toBe('evt_1')
    const both = withHeader('webhook-signature', (value) => `v1,AAAA v2,zz ${value}`)
    expect(verifyCallback(both).id).toBe('evt_1')
  })

  it.each([
    ['no id', without('webhook-id')],
    ['no timestamp', without('webhook-timestamp')],
    ['no signature', without('webhook-signature')],
    ['an empty signature', withHeader('webhook-signature', () => '')],
    ['another secret', { ...signed(), secrets: [OTHER] }],
    ['no secret', { ...signed(), secrets: [] }],
    ['another body', { ...signed(), body: `${BODY} ` }],
    ['another id', withHeader('webhook-id', () => 'evt_2')],
    ['another time', withHeader('webhook-timestamp', (value) => String(Number(value) + 1))],
    ['a time that is too old', signed({ at: NOW - 301_000 })],
    ['a time that is to come', signed({ at: NOW + 301_000 })],
    ['a time in milliseconds', withHeader('webhook-timestamp', (value) => `${value}000`)],
    ['a time that is no number', withHeader('webhook-timestamp', () => 'NaN')],
    ['a negative time', withHeader('webhook-timestamp', (value) => `-${value}`)],
    ['half a signature', withHeader('webhook-signature', (value) => value.slice(0, 20))],
    [
      'a signature of another version',
      withHeader('webhook-signature', (value) => value.replace('v1,', 'v2,')),
    ],
    ['a bare signature', withHeader('webhook-signature', (value) => value.replace('v1,', ''))],
    ['a body that is not JSON', signed({ body: 'text' })],
    ['a body that is no event', signed({ body: '{"type":1}' })],
    ['a body that is a list', signed({ body: '[]' })],
    ['a body that is null', signed({ body: 'null' })],
  ])('rejects %s', (_, options) => {
    expect(() => verifyCallback(options)).toThrow(CallbackRejected)
  })

  it('respects the given tolerance', () => {
    const late = signed({ at: NOW - 400_000 })
    expect(verifyCallback({ ...late, tolerance: 400 }).id).toBe('evt_1')
    expect(() => verifyCallback({ ...late, tolerance: 399 })).toThrow(CallbackRejected)
  })

  it('makes the signature of the Standard Webhooks vector', () => {
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    }
    const check = () =>
      verifyCallback({ headers, body: '{"test": 2432232314}', secrets: [SECRET], now: 1_614_265_330_000 })
    // Its signature fits; its body is none of our events.
    expect(check).toThrow('the body is not an event')
  })
})

describe('verifyCallbacks', () => {
  it('returns every event of a batch, and one as a list of one', () => {
    const batch = `[${BODY},${BODY.replace('evt_1', 'evt_2')}]`
    expect(verifyCallbacks(signed({ id: 'bat_1', body: batch })).map(({ id }) => id)).toEqual([
      'evt_1',
      'evt_2',
    ])
    expect(verifyCallbacks(signed()).map(({ id }) => id)).toEqual(['evt_1'])
  })

  it('refuses a batch unless verifyCallbacks is used', () => {
    expect(() => verifyCallback(signed({ body: `[${BODY}]` }))).toThrow('verifyCallbacks')
  })

  it('refuses a batch in which one entry is no event', () => {
    expect(() => verifyCallbacks(signed({ body: `[${BODY},7]` }))).toThrow(CallbackRejected)
  })
})

describe('an event in the format of CloudEvents', () => {
  it('returns the same event as in the standard format', () => {
    const body = JSON.stringify({
      specversion: '1.0',
      id: 'evt_1',
      source: '/sidecar',
      type: 'turn.settled',
      subject: 's',
      time: '2026-11-21T05:00:00.123Z',
      datacontenttype: 'application/json',
      data: {
        session_id: 's',
        data: { turn: { id: 'turn_1' } },
        delivery: { attempt: 1, handler: 'app' },
        seen: { stream: 1 },
      },
    })
    expect(verifyCallback(signed({ body }))).toEqual({
      type: 'turn.settled',
      timestamp: '2026-11-21T05:00:00.123Z',
      id: 'evt_1',
      session_id: 's',
      data: { turn: { id: 'turn_1' } },
      delivery: { attempt: 1, handler: 'app' },
      seen: { stream: 1 },
    })
  })
})

describe('verifyToolCall', () => {
  const CALL = '{"type":"tool.call","call_id":"call_1","name":"lookup","arguments":{}}'

  it('returns the call of a genuine request', () => {
    expect(verifyToolCall(signed({ id: 'call_1', body: CALL }))).toMatchObject({
      call_id: 'call_1',
      name: 'lookup',
    })
  })

  it('refuses a forged one, and a callback', () => {
    expect(() => verifyToolCall({ ...signed({ id: 'call_1', body: CALL }), body: `${CALL} ` })).toThrow(
      CallbackRejected,
    )
    expect(() => verifyToolCall(signed())).toThrow('not a tool call')
  })
})
