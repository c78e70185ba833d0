/** Counts of the store's content. Times: milliseconds. */
export interface StoreCounts {
  /** By status, those that are not deleted. */
  sessions: Record<string, number>
  /** By type, those that wait. `oldest`: when it was created, on the service's clock. */
  actions: Record<string, { count: number; oldest: number | null }>
  /** By handler. `oldestPending`: when the oldest undelivered fact was stored, on our wall clock. */
  deliveries: Record<string, { pending: number; dead: number; oldestPending: number | null }>
  openCalls: number
  /** When the oldest turn was created that is over and waits for artifacts, on the service's clock. */
  artifactsPendingSince: number | null
  /** Sessions with a pending read, including reads that we planned ourselves. */
  dirty: number
  /** Hints of channels that are not read yet; `oldest`: since when, on our wall clock. */
  unread: { count: number; oldest: number | null }
  /** With a scope: sessions of others in the organization. */
  foreignSessions: number
  /** Frames that wait until the owners of their sessions are known. */
  heldFrames: number
  bytes: number
}
