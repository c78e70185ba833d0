import { createHmac } from 'node:crypto'
import { assert, nat, property, string, uint8Array } from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import {
  callbackKey,
  Signer,
  sameSecret,
  signServiceWebhook,
  verifyCallbackSignature,
  verifyServiceWebhook,
} from '../../src/std/signature.ts'

describe('a webhook of the service', () => {
  const SECRET = 'naive secret ☂'
  const AT = '1763701200000'
  const BODY = '{"type":"turn.completed","text":"naïve"}'
  /** Python's hmac, of the same bytes. */
  const SIGNATURE = '9a86fb6a1ee44bc4dd8558db4297670b5ac80bdfab9b74577a005a4e0cb31c0b'

  it('is signed with the hex HMAC-SHA256 of its time and its body', () => {
    expect(signServiceWebhook(SECRET, AT, BODY)).toBe(SIGNATURE)
    expect(signServiceWebhook(SECRET, AT, Buffer.from(BODY))).toBe(SIGNATURE)
  })

  it('is genuine when any of our secrets made its signature, whichever that is', () => {
    for (const secrets of [[SECRET], [SECRET, 'b'], ['a', SECRET], ['a', SECRET, 'b']])
      expect(verifyServiceWebhook(secrets, AT, BODY, SIGNATURE)).toBe(true)
    for (const secrets of [[], ['a'], ['a', 'b'], [`${SECRET} `]])
      expect(verifyServiceWebhook(secrets, AT, BODY, SIGNATURE)).toBe(false)
  })

  it.each([
    ['nothing', ''],
    ['half of it', SIGNATURE.slice(0, 32)],
    ['one digit less', SIGNATURE.slice(1)],
    ['one digit more', `${SIGNATURE}0`],
    ['a line more', `${SIGNATURE}\n`],
    ['capitals', SIGNATURE.toUpperCase()],
    ['64 characters that are no digits', 'x'.repeat(64)],
    ['64 characters with one that is no digit', `${SIGNATURE.slice(0, 63)}g`],
    ['64 characters of more bytes', 'ä'.repeat(64)],
    ['another version before it', `v1=${SIGNATURE}`],
  ])('is not genuine with %s for a signature, and no such thing throws', (_, signature) => {
    expect(verifyServiceWebhook([SECRET], AT, BODY, signature)).toBe(false)
  })

  it('is genuine as it was signed, and forged if a byte of its time, body or secret is changed', () => {
    assert(
      property(string(), string(), uint8Array(), (secret, at, body) => {
        const signature = signServiceWebhook(secret, at, body)
        expect(verifyServiceWebhook([secret], at, body, signature)).toBe(true)
        expect(verifyServiceWebhook([`${secret}x`], at, body, signature)).toBe(false)
        expect(verifyServiceWebhook([secret], `${at}0`, body, signature)).toBe(false)
        expect(verifyServiceWebhook([secret], at, Buffer.concat([body, body, Buffer.of(0)]), signature)).toBe(
          false,
        )
      }),
    )
  })

  it('distinguishes as many secrets as are ever used', () => {
    const secrets = Array.from({ length: 200 }, (_, index) => `secret ${index}`)
    const signatures = secrets.map((secret) => signServiceWebhook(secret, AT, BODY))
    expect(new Set(signatures).size).toBe(200)
    expect(secrets.map((secret) => signServiceWebhook(secret, AT, BODY))).toEqual(signatures)
  })
})

describe('a Standard Webhooks secret', () => {
  const bytes = (secret: string) => [...callbackKey(secret)]

  it('is base64, with or without its prefix, of either alphabet', () => {
    for (const secret of ['whsec_-_8=', 'whsec_+/8=', '+/8=', '+/8', '-_8'])
      expect(bytes(secret)).toEqual([0xfb, 0xff])
  })

  it.each([
    '',
    'whsec_',
    'whsec_=',
    'whsec_A',
    'whsec_AAAA AAAA',
    'whsec_AAAA!',
    '!AAAA',
    'AAAA===',
    'whsec_whsec_!',
  ])('that is %j is refused', (secret) => {
    expect(() => callbackKey(secret)).toThrow('a Standard Webhooks secret is "whsec_" followed by base64')
  })

  it('may be replaced, added or removed while it is in use', () => {
    const secrets = { current: ['whsec_AQ==', 'whsec_Ag=='] }
    const signer = new Signer(secrets)
    const keys = [1, 2, 3, 4].map((byte) => Buffer.of(byte))
    /** The first bytes of the keys that signed. */
    const signedWith = () => {
      const header = signer.sign('evt_1', 5000, 'x').headers['webhook-signature'] ?? ''
      const made = keys.map((key) => createHmac('sha256', key).update('evt_1.5.x').digest('base64'))
      return header.split(' ').map((signature) => made.indexOf(signature.slice(3)) + 1)
    }
    expect(signedWith()).toEqual([1, 2])
    secrets.current = ['whsec_Aw==', 'whsec_Ag==']
    expect(signedWith()).toEqual([3, 2])
    secrets.current = ['whsec_Aw==', 'whsec_Ag==', 'whsec_BA==']
    expect(signedWith()).toEqual([3, 2, 4])
    secrets.current = ['whsec_Aw==']
    expect(signedWith()).toEqual([3])
    secrets.current = []
    expect(signer.sign('evt_1', 5000, 'x').headers).not.toHaveProperty('webhook-signature')
  })

  it('signs what HMAC-SHA256 signs, whatever the length of the key and of the text', () => {
    assert(
      property(
        uint8Array({ minLength: 1, maxLength: 200 }),
        string({ unit: 'grapheme', maxLength: 300 }),
        nat(200),
        (key, piece, times) => {
          const secret = `whsec_${Buffer.from(key).toString('base64')}`
          const text = piece.repeat(times)
          const { headers, body } = new Signer({ current: [secret] }).sign('evt_1', 7000, text)
          const expected = createHmac('sha256', key).update('evt_1.7.').update(text).digest('base64')
          expect(headers['webhook-signature']).toBe(`v1,${expected}`)
          expect(body.equals(Buffer.from(text))).toBe(true)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('a callback', () => {
  /** The example of Standard Webhooks. */
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
  const AT = '1614265330'
  const BODY = '{"test": 2432232314}'
  const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
  const KEY = callbackKey(SECRET)
  const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
  const signed = (secrets: readonly string[]) =>
    new Signer({ current: secrets }).sign(ID, Number(AT) * 1000, BODY).headers
  const signature = (secrets: readonly string[]) => signed(secrets)['webhook-signature'] ?? ''

  it('is signed as Standard Webhooks signs it, once for each key', () => {
    expect(signature([SECRET])).toBe(SIGNATURE)
    expect(signature([OTHER, SECRET])).toBe(`${signature([OTHER])} ${SIGNATURE}`)
  })

  it('has headers that Standard Webhooks takes, with its time in whole seconds that have passed', () => {
    const now = Date.now()
    const { headers } = new Signer({ current: [OTHER, SECRET] }).sign('evt_1', now, BODY)
    expect(new Webhook(SECRET).verify(BODY, headers)).toEqual({ test: 2432232314 })
    expect(new Signer({ current: [SECRET] }).sign(ID, 1_614_265_330_999, BODY).headers).toEqual({
      'user-agent': 'agent-session-sidecar',
      'webhook-id': ID,
      'webhook-timestamp': AT,
      'webhook-signature': SIGNATURE,
    })
  })

  it('without a key says who sends it, and is not signed', () => {
    expect(signed([])).toEqual({
      'user-agent': 'agent-session-sidecar',
      'webhook-id': ID,
      'webhook-timestamp': AT,
    })
  })

  it('is genuine when any key made any signature of its header', () => {
    const other = signature([OTHER])
    for (const header of [
      SIGNATURE,
      `${other} ${SIGNATURE}`,
      `${SIGNATURE} ${other}`,
      `v1,AAAA v2,zz ${SIGNATURE}`,
    ])
      for (const keys of [[KEY], [KEY, callbackKey('AAAA')], [callbackKey('AAAA'), KEY]])
        expect(verifyCallbackSignature(keys, ID, AT, BODY, header)).toBe(true)
  })

  it.each([
    ['none', ''],
    ['one of another version', SIGNATURE.replace('v1', 'v2')],
    ['one without a version', SIGNATURE.slice(3)],
    ['one that only holds a version', `v0;${SIGNATURE}`],
    ['one that is cut', SIGNATURE.slice(0, 20)],
    ['one that is longer', `${SIGNATURE.slice(0, -1)}AAAA`],
    ['that of another key', signature([OTHER])],
  ])('is not genuine with %s for a signature', (_, header) => {
    expect(verifyCallbackSignature([KEY], ID, AT, BODY, header)).toBe(false)
  })

  it('is not genuine without a key, or with its id, its time or its body changed', () => {
    expect(verifyCallbackSignature([], ID, AT, BODY, SIGNATURE)).toBe(false)
    expect(verifyCallbackSignature([KEY], `${ID}x`, AT, BODY, SIGNATURE)).toBe(false)
    expect(verifyCallbackSignature([KEY], ID, `${AT}0`, BODY, SIGNATURE)).toBe(false)
    expect(verifyCallbackSignature([KEY], ID, AT, `${BODY} `, SIGNATURE)).toBe(false)
  })
})

it('two secrets are equal only if they are equal as a whole', () => {
  assert(
    property(string(), string(), (one, more) => {
      expect(sameSecret(one, one)).toBe(true)
      expect(sameSecret(one, `${one}${more}`)).toBe(more === '')
      expect(sameSecret(`${more}${one}`, one)).toBe(more === '')
    }),
  )
})
