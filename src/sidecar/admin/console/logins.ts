import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { sameSecret } from '../../../std/signature.ts'

/** Milliseconds until a login expires. */
export const LOGIN_TIME = 12 * 60 * 60_000
/** Logins that are remembered; a further one ends the oldest. */
const LOGINS = 100

export interface Logins {
  /** @returns a new id for a login with `token`, and its expiry. */
  open(token: string): { id: string; expiresAt: number }
  /** The expiry of the login; null when there is none, it expired, or the admin token has changed. */
  expiryOf(id: string | null, token: string): number | null
  close(id: string | null): void
}

/** Browsers that gave the admin token. Only in memory: after a restart they need the token again. */
export function createLogins(now: () => number): Logins {
  const logins = new Map<string, { token: string; expiresAt: number }>()
  return {
    open(token) {
      const [oldest] = logins.keys()
      if (oldest !== undefined && logins.size >= LOGINS) logins.delete(oldest)
      const id = randomBytes(32).toString('base64url')
      const expiresAt = now() + LOGIN_TIME
      logins.set(id, { token, expiresAt })
      return { id, expiresAt }
    },
    expiryOf(id, token) {
      const login = id === null ? undefined : logins.get(id)
      if (id === null || login === undefined) return null
      if (login.expiresAt > now() && sameSecret(login.token, token)) return login.expiresAt
      logins.delete(id)
      return null
    },
    close(id) {
      if (id !== null) logins.delete(id)
    },
  }
}

/** The id of the login of the browser that sent `request`; null when it sent none. */
export function loginOf({ headers, socket }: IncomingMessage): string | null {
  const name = cookieOf(socket.localPort ?? 0)
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2)
    if (key === name && value !== undefined && /^[\w-]{43}$/.test(value)) return value
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
