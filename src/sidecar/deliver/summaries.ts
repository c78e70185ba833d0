import type { Subscriber } from '../../core/bus.ts'
import type { ShardTopics } from '../../core/shards.ts'
import type { Clock } from '../../std/ports.ts'
import { summaryOf, type SessionSummary } from '../../core/resource.ts'
import type { TraceSource } from '../../core/trace.ts'
import type { Store } from '../../core/store.ts'

/** Sessions whose title, metadata and status are kept in memory; those of others are read from the store. */
const KEPT = 5000
/** How long the first facts of a session wait for its first read, which brings their summary, milliseconds. */
const PATIENCE = 2000

/** The summaries of sessions: title, metadata and status, which every callback contains. */
export interface Summaries extends Required<Pick<Subscriber, 'sessionRead'>>, Pick<ShardTopics, 'lost'> {
  /** The summary, if it is in memory. */
  peek(sessionId: string): SessionSummary | undefined
  /** The summary, read from the store if it is not in memory. */
  get(sessionId: string): Promise<SessionSummary | null>
  /** The origin of the session's trace. The `traceparent` of its metadata is known only if its summary is in memory. */
  traceOf(sessionId: string): TraceSource
  /**
   * If the session was not read yet, waits for its first read, until the fact is two seconds old or `signal` aborts.
   * `at`: when the fact was stored, our wall clock.
   */
  find(sessionId: string, at: number, signal: AbortSignal): Promise<SessionSummary | null>
}

export function createSummaries(store: Pick<Store, 'resources' | 'shards'>, clock: Clock): Summaries {
  const kept = new Map<string, SessionSummary>()
  const waiting = new Map<string, Set<(summary: SessionSummary) => void>>()

  const keep = (sessionId: string, summary: SessionSummary): void => {
    kept.delete(sessionId)
    kept.set(sessionId, summary)
    if (kept.size <= KEPT) return
    const [oldest] = kept.keys()
    if (oldest !== undefined) kept.delete(oldest)
  }

  const wait = (sessionId: string, ms: number, signal: AbortSignal): Promise<SessionSummary | null> =>
    new Promise((resolve) => {
      const waiters = waiting.get(sessionId) ?? new Set()
      waiting.set(sessionId, waiters)
      const done = (summary: SessionSummary | null): void => {
        timer.cancel()
        signal.removeEventListener('abort', giveUp)
        waiters.delete(done)
        if (waiters.size === 0) waiting.delete(sessionId)
        resolve(summary)
      }
      const giveUp = (): void => done(null)
      const timer = clock.after(ms, giveUp)
      signal.addEventListener('abort', giveUp)
      waiters.add(done)
    })

  return {
    peek: (sessionId) => kept.get(sessionId),
    get: async (sessionId) => kept.get(sessionId) ?? (await store.resources.summary(sessionId)),
    traceOf: (sessionId) => ({ given: kept.get(sessionId)?.metadata['traceparent'], key: sessionId }),
    async find(sessionId, at, signal) {
      const stored = await store.resources.summary(sessionId)
      if (stored !== null) {
        keep(sessionId, stored)
        return stored
      }
      const left = at + PATIENCE - clock.now()
      if (left <= 0 || signal.aborted) return null
      return await wait(sessionId, Math.min(left, PATIENCE), signal)
    },
    sessionRead(session) {
      const summary = summaryOf(session)
      // A session of another replica may change there without a report here, so its summary is not kept.
      if (store.shards.owns(session.id)) keep(session.id, summary)
      for (const done of waiting.get(session.id) ?? []) done(summary)
    },
    lost() {
      for (const sessionId of kept.keys()) if (!store.shards.owns(sessionId)) kept.delete(sessionId)
    },
  }
}
