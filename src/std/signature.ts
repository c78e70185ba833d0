import { createHmac, createSecretKey, hash, timingSafeEqual, type KeyObject } from 'node:crypto'

/**
 * The signature of the Agent Session Service on a webhook delivery: hex HMAC-SHA256 of
 * `<timestamp>.<raw body>` (rules WHS-29, WHS-30). `timestamp` is the header's digits, untouched.
 */
export function signServiceWebhook(secret: string, timestamp: string, body: Uint8Array | string): string {
  return createHmac('sha256', serviceKey(secret)).update(`${timestamp}.`).update(body).digest('hex')
}

/** Making a key costs five times as much as signing with it: those of the secrets in use are kept. */
const KEYS_KEPT = 64
const serviceKeys = new Map<string, KeyObject>()

function serviceKey(secret: string): KeyObject {
  let key = serviceKeys.get(secret)
  if (key === undefined) {
    key = createSecretKey(secret, 'utf8')
    if (serviceKeys.size >= KEYS_KEPT) serviceKeys.clear()
    serviceKeys.set(secret, key)
  }
  return key
}

const HEX_SHA256 = /^[0-9a-f]{64}$/

/** Whether `signature` has the form of one: 64 lower-case hex digits. */
export function isServiceSignature(signature: string): boolean {
  return HEX_SHA256.test(signature)
}

/** True when any of `secrets` made `signature`. Constant-time per secret; a value that is not 64 lower-case hex digits is never compared. */
export function verifyServiceWebhook(
  secrets: readonly string[],
  timestamp: string,
  body: Uint8Array | string,
  signature: string,
): boolean {
  if (!isServiceSignature(signature)) return false
  const given = Buffer.from(signature, 'hex')
  let genuine = false
  for (const secret of secrets) {
    const expected = createHmac('sha256', serviceKey(secret)).update(`${timestamp}.`).update(body).digest()
    if (timingSafeEqual(expected, given)) genuine = true
  }
  return genuine
}

const SECRET_PREFIX = 'whsec_'

/**
 * The key inside a Standard Webhooks secret (`whsec_` + base64). A secret without the prefix is used as base64, too.
 * @throws {Error} when the rest is not base64 of at least one byte.
 */
export function callbackKey(secret: string): KeyObject {
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  const key = Buffer.from(encoded, 'base64')
  if (key.length === 0 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded)) {
    throw new Error('a Standard Webhooks secret is "whsec_" followed by base64')
  }
  return createSecretKey(key)
}

/** The keys of secrets that may be replaced in place; decoded once for each set. */
export function keyRing(secrets: readonly string[]): () => readonly KeyObject[] {
  let decoded: readonly string[] = []
  let keys: readonly KeyObject[] = []
  return () => {
    if (decoded.length !== secrets.length || decoded.some((secret, index) => secret !== secrets[index])) {
      decoded = [...secrets]
      keys = decoded.map(callbackKey)
    }
    return keys
  }
}

/**
 * The `webhook-signature` header of Standard Webhooks: `v1,` + base64 HMAC-SHA256 of `id.timestamp.body`,
 * one for each key, separated by a space.
 */
export function signCallback(
  keys: readonly KeyObject[],
  id: string,
  timestamp: string,
  body: Uint8Array | string,
): string {
  const head = `${id}.${timestamp}.`
  let header = ''
  for (const key of keys) {
    const signature = createHmac('sha256', key).update(head).update(body).digest('base64')
    header += header === '' ? `v1,${signature}` : ` v1,${signature}`
  }
  return header
}

/**
 * The headers of a request that we sign: who sends it, and Standard Webhooks' own three. Without keys it is not signed.
 * `now` is wall clock milliseconds.
 */
export function signedHeaders(
  keys: readonly KeyObject[],
  id: string,
  now: number,
  body: Uint8Array | string,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const headers: Record<string, string> = {
    'user-agent': 'agent-session-sidecar',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
  }
  if (keys.length > 0) headers['webhook-signature'] = signCallback(keys, id, timestamp, body)
  return headers
}

/** True when any `v1,` part of a `webhook-signature` header was made with any of `keys`. */
export function verifyCallbackSignature(
  keys: readonly KeyObject[],
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

/** Compares two secrets (an admin token, say) without telling by time how much of them agrees. */
export function sameSecret(expected: string, given: string): boolean {
  return timingSafeEqual(hash('sha256', expected, 'buffer'), hash('sha256', given, 'buffer'))
}
