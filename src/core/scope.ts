import type { Session } from './resource.ts'

/** The conditions for sessions of this sidecar. A session must meet all that are set. */
export interface Scope {
  /** Pairs that the session's metadata must have. */
  metadata: Readonly<Record<string, string>>
  /** Ids of tokens, one of which must have created the session. Empty: any token. */
  createdByToken: readonly string[]
}

/**
 * The owner of a session. `pending`: the session came into the scope and was not read since. `gone`: it was deleted
 * before it could be read. A session without an entry is unknown.
 */
export type Owner = 'pending' | 'ours' | 'foreign' | 'gone'

/** The entry of a session. */
export interface OwnerRecord {
  owner: Owner
  /** Service clock, milliseconds: when it came into the scope from outside; null: it was never outside. */
  adoptedAt: number | null
}

export function isOthers({ owner }: Pick<OwnerNote, 'owner'>): boolean {
  return owner === 'foreign' || owner === 'gone'
}

/** The entry that a commit writes for a session. `unknown` removes it. */
export interface OwnerNote {
  sessionId: string
  owner: Owner | 'unknown'
  /** With `pending`. */
  adoptedAt?: number
  /** Our wall clock, milliseconds. */
  at: number
}

/** Frames of sessions that are unknown or pending. */
export interface HeldFrames {
  frames: number
  characters: number
}

/** `scope` null: every session. */
export function inScope(session: Pick<Session, 'metadata' | 'createdByToken'>, scope: Scope | null): boolean {
  if (scope === null) return true
  const { metadata, createdByToken } = scope
  if (createdByToken.length > 0 && !createdByToken.includes(session.createdByToken ?? '')) return false
  return Object.entries(metadata).every(
    ([key, value]) => Object.hasOwn(session.metadata, key) && session.metadata[key] === value,
  )
}

/** The same text for the same scope, whatever the order of its keys. */
export function scopeText(scope: Scope | null): string {
  if (scope === null) return ''
  const pairs = Object.entries(scope.metadata).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([pairs, scope.createdByToken.toSorted()])
}
