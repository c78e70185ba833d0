import { randomBytes } from 'node:crypto'
import { sameSecret } from '../../../std/signature.ts'

/** Milliseconds for which a login holds. */
export const LOGIN_TIME = 12 * 60 * 60_000
/** Logins that are remembered; a further one ends the oldest. */
const LOGINS = 100

export interface Logins {
  /** @returns a fresh id that stands for `token`, and when it ends. */
  open(token: string): { id: string; expiresAt: number }
  /** When the login ends; null when there is none, it ended, or the admin token is another by now. */
  expiryOf(id: string | null, token: string): number | null
  close(id: string | null): void
}

/** Who gave the admin token in a browser. In memory alone: a restart asks for the token again. */
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
