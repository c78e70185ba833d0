import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from './bounded-map.ts'

/**
 * The two blocks that HMAC (RFC 2104) derives from a key: `inner` is hashed before the message, `outer` before the
 * first hash.
 */
interface Pads {
  inner: Buffer
  /** Has room for the first hash after it. */
  outer: Buffer
}

/** Bytes of a block and of a hash of SHA-256. */
const BLOCK = 64
const HASH = 32

function padsOf(given: Buffer): Pads {
  const key = given.length > BLOCK ? hash('sha256', given, 'buffer') : given
  const pads = { inner: Buffer.alloc(BLOCK, 0x36), outer: Buffer.alloc(BLOCK + HASH, 0x5c) }
  for (const [at, byte] of key.entries()) {
    pads.inner.writeUInt8(0x36 ^ byte, at)
    pads.outer.writeUInt8(0x5c ^ byte, at)
  }
  return pads
}

/**
 * The HMAC-SHA256 of the bytes of `block` after its first BLOCK bytes, which are overwritten. It makes two calls of
 * `hash`, because `createHmac` makes a stream, which takes twice the time.
 */
function hmac({ inner, outer }: Pads, block: Buffer, encoding: 'hex' | 'base64'): string {
  block.set(inner)
  outer.write(hash('sha256', block, 'binary'), BLOCK, 'latin1')
  return hash('sha256', outer, encoding)
}

/** The service has few secrets in use. */
const PADS_KEPT = 64
const servicePads = new BoundedMap<string, Pads>(PADS_KEPT)

function servicePadsOf(secret: string): Pads {
  let pads = servicePads.get(secret)
  if (pads === undefined) {
    pads = padsOf(Buffer.from(secret))
    servicePads.set(secret, pads)
  }
  return pads
}

/** A webhook has some hundred bytes; a longer one gets a buffer of its own. */
const webhook = Buffer.allocUnsafeSlow(4 * 1024)

/** `<timestamp>.<raw body>`, after BLOCK free bytes. */
function serviceMessage(timestamp: string, body: Uint8Array | string): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const bodyAt = BLOCK + timestamp.length + 1
  const end = bodyAt + bytes.length
  const message = end <= webhook.length ? webhook : Buffer.allocUnsafeSlow(end)
  message.write(`${timestamp}.`, BLOCK, 'latin1')
  message.set(bytes, bodyAt)
  return message.subarray(0, end)
}

/**
 * The signature of the Agent Session Service on a webhook delivery: hex HMAC-SHA256 of
 * `<timestamp>.<raw body>` (rules WHS-29, WHS-30). `timestamp` is the header's digits, untouched.
 */
export function signServiceWebhook(secret: string, timestamp: string, body: Uint8Array | string): string {
  return hmac(servicePadsOf(secret), serviceMessage(timestamp, body), 'hex')
}

const HEX_SHA256 = /^[0-9a-f]{64}$/

/** Whether `signature` has the form of a signature: 64 lower-case hex digits. */
export function isServiceSignature(signature: string): boolean {
  return HEX_SHA256.test(signature)
}

const given = Buffer.alloc(2 * HASH)
const expected = Buffer.alloc(2 * HASH)

/** True when any of `secrets` made `signature`. Constant-time per secret; a value that is not 64 lower-case hex digits is never compared. */
export function verifyServiceWebhook(
  secrets: readonly string[],
  timestamp: string,
  body: Uint8Array | string,
  signature: string,
): boolean {
  if (secrets.length === 0 || !isServiceSignature(signature)) return false
  given.write(signature, 'latin1')
  const message = serviceMessage(timestamp, body)
  let genuine = false
  for (const secret of secrets) {
    expected.write(hmac(servicePadsOf(secret), message, 'hex'), 'latin1')
    if (timingSafeEqual(expected, given)) genuine = true
  }
  return genuine
}

const SECRET_PREFIX = 'whsec_'

/**
 * The key inside a Standard Webhooks secret (`whsec_` + base64). A secret without the prefix is used as base64, too.
 * @throws {Error} when the rest is not base64 of at least one byte.
 */
export function callbackKey(secret: string): Buffer {
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  const key = Buffer.from(encoded, 'base64')
  if (key.length === 0 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded)) {
    throw new Error('a Standard Webhooks secret is "whsec_" followed by base64')
  }
  return key
}

/**
 * The secrets of one owner, the newest first. They may change while they are in use: a file is rotated, or the
 * service issues a new one. Then the whole array is replaced.
 */
export interface Secrets {
  current: readonly string[]
}

/** Callbacks are encoded in this buffer; a longer one gets a buffer of its own. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** A body, and the headers that prove its sender. */
export interface Signed {
  headers: Record<string, string>
  /** Valid until any signer signs the next body. */
  body: Buffer
}

/**
 * Signs the bodies of one receiver: the `webhook-signature` of Standard Webhooks is `v1,` + base64 HMAC-SHA256 of
 * `id.timestamp.body`, one for each secret, separated by a space. Without secrets a body is not signed.
 */
export class Signer {
  readonly #secrets: Secrets
  #decoded: readonly string[] = []
  #pads: readonly Pads[] = []
  #second = 0
  #timestamp = '0'

  constructor(secrets: Secrets) {
    this.#secrets = secrets
  }

  /** `now`: wall clock milliseconds. `id`: ASCII only. */
  sign(id: string, now: number, text: string): Signed {
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#timestamp = String(second)
    }
    const head = `${id}.${this.#timestamp}.`
    const bodyAt = BLOCK + head.length
    const longest = bodyAt + 3 * text.length
    const bytes = longest <= shared.length ? shared : Buffer.allocUnsafeSlow(bodyAt + Buffer.byteLength(text))
    bytes.write(head, BLOCK, 'latin1')
    const end = bodyAt + bytes.write(text, bodyAt)
    const headers: Record<string, string> = {
      'user-agent': 'agent-session-sidecar',
      'webhook-id': id,
      'webhook-timestamp': this.#timestamp,
    }
    let signatures = ''
    const block = bytes.subarray(0, end)
    for (const pads of this.#current())
      signatures += `${signatures === '' ? '' : ' '}v1,${hmac(pads, block, 'base64')}`
    if (signatures !== '') headers['webhook-signature'] = signatures
    return { headers, body: bytes.subarray(bodyAt, end) }
  }

  #current(): readonly Pads[] {
    const { current } = this.#secrets
    if (current !== this.#decoded) {
      this.#pads = current.map((secret) => padsOf(callbackKey(secret)))
      this.#decoded = current
    }
    return this.#pads
  }
}

/** True when any `v1,` part of a `webhook-signature` header was made with any of `keys`. */
export function verifyCallbackSignature(
  keys: readonly Buffer[],
  id: string,
  timestamp: string,
  body: Uint8Array | string,
  header: string,
): boolean {
  let genuine = false
  for (const part of header.split(' ')) {
    if (!part.startsWith('v1,')) continue
    const given = Buffer.from(part.slice(3), 'base64')
    for (const key of keys) {
      const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
      if (given.length === expected.length && timingSafeEqual(expected, given)) genuine = true
    }
  }
  return genuine
}

/** Compares two secrets (for example an admin token) in constant time. */
export function sameSecret(expected: string, given: string): boolean {
  return timingSafeEqual(hash('sha256', expected, 'buffer'), hash('sha256', given, 'buffer'))
}
