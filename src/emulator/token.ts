import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

export const SCOPES = [
  'sessions:read',
  'sessions:write',
  'tools:respond',
  'artifacts:read',
  'credentials:write',
  'cli',
] as const

export type Scope = (typeof SCOPES)[number]

/** The scopes that drive sessions end to end; health names those that a `cli` token lacks. */
export const SESSION_SCOPES: readonly Scope[] = [
  'sessions:read',
  'sessions:write',
  'tools:respond',
  'artifacts:read',
]

const TOKEN_PREFIX = 'svc_pat_'
export const TOKEN_DAYS = [7, 30, 90] as const
const DAY_MS = 86_400_000

/** A personal access token: scopes are recorded when it is minted and never change. */
export interface Token {
  readonly id: string
  readonly secret: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  /** Null for the token that exists at the start: a test that advances the clock by 90 days can still use it. */
  readonly expiresAt: number | null
  revoked: boolean
}

/** Every token of the one organization that an emulator serves. */
export class Tokens {
  readonly #clock: Clock
  readonly #bySecret = new Map<string, Token>()

  constructor(clock: Clock, first: string) {
    this.#clock = clock
    this.#add(
      first,
      SCOPES.filter((scope) => scope !== 'cli'),
      null,
    )
  }

  mint(scopes: readonly Scope[], days: number): Token {
    const secret = TOKEN_PREFIX + randomBytes(20).toString('hex')
    return this.#add(secret, scopes, this.#clock.now() + days * DAY_MS)
  }

  /** The token with this secret, if it is neither revoked nor expired. */
  find(secret: string): Token | undefined {
    const token = this.#bySecret.get(secret)
    if (token === undefined || token.revoked) return undefined
    return token.expiresAt !== null && token.expiresAt <= this.#clock.now() ? undefined : token
  }

  /** True if there was a token with this id. It is rejected from the next request on. */
  revoke(id: string): boolean {
    const token = this.all().find((candidate) => candidate.id === id)
    if (token !== undefined) token.revoked = true
    return token !== undefined
  }

  /** Puts a token back, in place of one with the same secret. */
  restore(token: Token): void {
    this.#bySecret.set(token.secret, token)
  }

  all(): Token[] {
    return [...this.#bySecret.values()]
  }

  #add(secret: string, scopes: readonly Scope[], expiresAt: number | null): Token {
    const id = `tok_${randomBytes(8).toString('hex')}`
    const token = { id, secret, scopes, createdAt: this.#clock.now(), expiresAt, revoked: false }
    this.#bySecret.set(secret, token)
    return token
  }
}
