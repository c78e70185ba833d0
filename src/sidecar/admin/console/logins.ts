import { createHmac, randomBytes, scryptSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { sameSecret } from '../../../std/signature.ts'

/** Milliseconds until a login expires. */
export const LOGIN_TIME = 12 * 60 * 60_000
/** The most ended logins that are remembered. A further one makes the oldest valid again; it needs a valid login, too. */
const ENDED = 10_000
/** A random part, the expiry and the signature. */
const ID = /^[\w-]{22}\.\d{1,16}\.[\w-]{43}$/
/** Separates this key from all others that someone may derive from the token. */
const PURPOSE = 'session-sidecar console login'
/**
 * A program on another port of the host gets the cookie and could try tokens until one gives its signature. So each try
 * takes about 40 ms, as does the first login here.
 */
const COST = { N: 2 ** 14, r: 8, p: 1 }

export interface Logins {
  /** @returns a new id for a login with `token`, and its expiry. */
  open(token: string): { id: string; expiresAt: number }
  /** The expiry of the login; null when there is none, it expired, or the admin token has changed. */
  expiryOf(id: string | null, token: string): number | null
  /** Only a login that is valid can be ended. */
  close(id: string | null, token: string): void
}

/**
 * Browsers that gave the admin token. A load balancer sends the requests of one page to several replicas. So an id carries its
 * expiry and is signed with a key of the token: each process with this token accepts it, after a restart too.
 */
export function createLogins(now: () => number): Logins {
  /** The expiry of each login that was ended. */
  const ended = new Map<string, number>()
  let known: { token: string; key: Buffer } | null = null

  const keyOf = (token: string): Buffer => {
    known = known?.token === token ? known : { token, key: scryptSync(token, PURPOSE, 32, COST) }
    return known.key
  }
  const sign = (text: string, token: string): string =>
    createHmac('sha256', keyOf(token)).update(text).digest('base64url')

  const expiryOf = (id: string | null, token: string): number | null => {
    if (id === null || ended.has(id)) return null
    const [random = '', expiry = '', signature = ''] = id.split('.')
    if (Number(expiry) <= now()) return null
    return sameSecret(sign(`${random}.${expiry}`, token), signature) ? Number(expiry) : null
  }

  return {
    expiryOf,
    open(token) {
      const expiresAt = now() + LOGIN_TIME
      const text = `${randomBytes(16).toString('base64url')}.${expiresAt}`
      return { id: `${text}.${sign(text, token)}`, expiresAt }
    },
    close(id, token) {
      const expiry = expiryOf(id, token)
      if (id === null || expiry === null) return
      for (const [other, until] of ended) if (until <= now() || ended.size >= ENDED) ended.delete(other)
      ended.set(id, expiry)
    },
  }
}

/** The id of the login of the browser that sent `request`; null when it sent none. */
export function loginOf({ headers, socket }: IncomingMessage): string | null {
  const name = cookieOf(socket.localPort ?? 0)
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2)
    if (key === name && value !== undefined && ID.test(value)) return value
  }
  return null
}

export function isLoggedIn(request: IncomingMessage, token: string | null, logins: Logins): boolean {
  return token !== null && logins.expiryOf(loginOf(request), token) !== null
}

/** All ports of a host share cookies: the name separates two sidecars on one machine. */
export function cookieOf(port: number): string {
  return `session_sidecar_${port}`
}
