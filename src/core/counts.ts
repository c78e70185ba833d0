/** Counts of the store's content. Times: milliseconds. */
export interface StoreCounts {
  /** By status, without deleted sessions. */
  sessions: Record<string, number>
  /** By type, the open actions. `oldest`: when the oldest was created, on the service's clock. */
  actions: Record<string, { count: number; oldest: number | null }>
  /** By handler. `oldestPending`: when the oldest undelivered fact was stored, on our wall clock. */
  deliveries: Record<string, { pending: number; dead: number; oldestPending: number | null }>
  openCalls: number
  /** Service clock: when the oldest turn was created that has ended and still waits for its artifacts. */
  artifactsPendingSince: number | null
  /** Sessions with a pending read, including reads that we planned ourselves. */
  dirty: number
  /** Hints of channels that are still unread; `oldest`: when the oldest came, on our wall clock. */
  unread: { count: number; oldest: number | null }
  /** With a scope: foreign sessions of the organization. */
  foreignSessions: number
  /** Frames that wait until the owners of their sessions are known. */
  heldFrames: number
  bytes: number
}
