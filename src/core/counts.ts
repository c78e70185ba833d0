/** How much there is of what in the store. Times: milliseconds. */
export interface StoreCounts {
  /** By status, those that are not deleted. */
  sessions: Record<string, number>
  /** By type, those that wait. `oldest`: when it was created, on the service's clock. */
  actions: Record<string, { count: number; oldest: number | null }>
  /** By handler. `oldestPending`: when the oldest undelivered fact was taken in, on our wall clock. */
  deliveries: Record<string, { pending: number; dead: number; oldestPending: number | null }>
  openCalls: number
  /** When the oldest turn was created that is over and waits for artifacts, on the service's clock. */
  artifactsPendingSince: number | null
  /** Sessions that are to be looked at, also those that we planned to look at ourselves. */
  dirty: number
  /** What a channel told of and has not been read yet; `oldest`: since when, on our wall clock. */
  unread: { count: number; oldest: number | null }
  /** With a scope: sessions of others in the organization. */
  foreignSessions: number
  /** Frames that wait until it is known whose their sessions are. */
  heldFrames: number
  bytes: number
}
