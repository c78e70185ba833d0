import { backoff } from '../core/backoff.ts'
import { messageOf, NetworkFault, ServiceError } from '../core/errors.ts'
import type { Frame, Meaning } from '../core/frame.ts'
import type { Hint } from '../core/hint.ts'
import type { ChannelStatus, Observer, TransientEvent } from '../core/observer.ts'
import type { Clock, Log, Random, Service } from '../core/ports.ts'
import { isBefore } from '../core/seq.ts'
import type { Batch, Store } from '../core/store.ts'
import { createBatcher, lowestSeq, type Pending } from './batch.ts'
import { drain } from './drain.ts'
import { findOpening, STREAM_OPENED, type Opening } from './opening.ts'

/** Without a `retry:` hint, long enough for the service to free the slot of the last connection, milliseconds. */
const RETRY_DEFAULT = 5000
const RETRY_CAP = 60_000
const FAILURE = { base: 1000, max: 60_000 }
/** How much of a frame that cannot be read is kept, characters. */
const QUARANTINED = 64 * 1024

export const STREAM_CURSOR = 'stream'
/** The first seq of a transcript that had no cursor to begin from. */
export const STREAM_BEGAN = 'stream_began'

export interface StreamSource {
  start(): void
  /** Lets what is being written end, for `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  connected(): boolean
  status(): ChannelStatus
}

export interface StreamOptions {
  service: Service
  store: Store
  /** The one door. */
  commit: (batch: Batch) => Promise<unknown>
  /** Reads a frame; handed in, since what a frame means is the intake's to say. */
  readFrame: (frame: Frame, at: number) => Meaning
  onTransient: (event: TransientEvent) => void
  observer: Observer
  clock: Clock
  random: Random
  log: Log
  /** First start only. */
  startFrom: 'now' | 'beginning' | { seq: string }
}

/** How a connection ended, and how long to wait before the next, milliseconds. */
interface End {
  reason: string
  error: string | null
  wait: number
}

/**
 * Follows the organization-wide stream: one connection at a time, drained into the store as fast as it comes, resumed at
 * the last committed seq. Nothing here waits for a handler.
 */
export function createStream(options: StreamOptions): StreamSource {
  const { service, store, commit, observer, clock, random, log } = options
  const batchOf = createBatcher()
  let abort: AbortController | null = null
  let running = false
  let done: Promise<void> = Promise.resolve()
  let wake: (() => void) | null = null
  /** Milliseconds, from the service's `retry:`. */
  let retry = RETRY_DEFAULT
  let failures = 0
  /** From where a replay that stopped is to go on. */
  let resumeAt: string | null = null
  /** Where a transcript begins that has no cursor to begin from: what lies before is no news. */
  let began: string | null = null
  /** The service refused our cursor: live frames until the next one is committed. */
  let lost = false
  let status: ChannelStatus = {
    state: 'waiting',
    since: 0,
    lastError: null,
    lastEventAt: null,
    lastSeq: null,
  }

  const become = (state: ChannelStatus['state'], lastError: string | null = status.lastError): void => {
    if (state === status.state && lastError === status.lastError) return
    status = { ...status, state, since: state === status.state ? status.since : clock.now(), lastError }
    observer.channel('stream', status)
  }

  const run = async (): Promise<void> => {
    while (running) {
      if (!service.authorized()) {
        become('stopped', 'the token was rejected')
        await pause(RETRY_CAP)
        continue
      }
      const end = await connect().catch((error: unknown) => {
        if (!running) return { reason: 'stopped', error: null, wait: 0 }
        log.error({ err: error }, 'stream: the store could not be used')
        failures++
        const wait = backoff(FAILURE, failures, random, floor())
        return { reason: 'failed', error: messageOf(error), wait }
      })
      if (!running) break
      observer.streamReconnect(end.reason)
      if (end.wait === 0) continue
      become('waiting', end.error)
      await pause(end.wait)
    }
    become('disabled')
  }

  /** Waits, at most until something is known to have changed. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(ms, resolve)
      wake = () => {
        timer.cancel()
        resolve()
      }
    })

  const connect = async (): Promise<End> => {
    become('connecting')
    const saved = await cursorToUse()
    began = await store.checkpoint(STREAM_BEGAN)
    const opening = saved === null ? await findOpening(options) : null
    const continuing = resumeAt !== null
    const cursor = startOfReplay(saved, opening)
    // We were told to stop while the store was asked: there was no connection to end.
    if (!running) return { reason: 'stopped', error: null, wait: 0 }
    abort = new AbortController()
    const openedAt = clock.steady()
    try {
      const chunks = await service.openStream(cursor, abort.signal)
      become('live', null)
      log.info({ cursor }, 'stream: connected')
      // A service that cannot place the cursor may say nothing of it: what happened meanwhile is then in no replay.
      if (!continuing) await commit({ hints: [sweepHint(clock.now())] })
      await follow(chunks, cursor, opening, abort)
      return await closed(saved, openedAt)
    } catch (error) {
      return await broken(error, cursor)
    } finally {
      abort.abort()
      abort = null
    }
  }

  const follow = async (
    chunks: AsyncIterable<Uint8Array>,
    cursor: string | null,
    opening: Opening | null,
    connection: AbortController,
  ): Promise<void> => {
    let warned = false
    const accept = (frame: Frame): Pending | null | 'stop' => {
      const at = clock.now()
      const meaning = options.readFrame(frame, at)
      if (meaning.kind === 'stop') {
        resumeAt = meaning.fromSeq
        return 'stop'
      }
      if (meaning.kind === 'transient') {
        observer.frame({ type: meaning.type, seq: null, at })
        const { type, sessionId, body } = meaning
        observer.transient({ type, sessionId, body, at })
        options.onTransient({ type, sessionId, body, at })
        return null
      }
      status.lastEventAt = at
      if (meaning.kind === 'unreadable') return { meaning, raw: frame.data, at }
      observer.frame({ type: meaning.name, seq: meaning.seq, at })
      if (!warned && cursor !== null && !isBefore(cursor, meaning.seq)) {
        warned = true
        log.warn(
          { seq: meaning.seq, cursor },
          'stream: frames from before the cursor came; they are deduplicated',
        )
      }
      return { meaning, raw: '', at }
    }
    const fresh = cursor === null || opening !== null
    const commitNews = async (batch: readonly Pending[]): Promise<void> =>
      write(opening === null ? batch : await opening.sift(batch), fresh)
    await drain({ chunks, connection, accept, commit: commitNews, clock, onRetry: (ms) => (retry = ms) })
  }

  /** `fresh`: there was no cursor to follow from. */
  const write = async (batch: readonly Pending[], fresh: boolean): Promise<void> => {
    if (batch.length === 0) return
    for (const { meaning, raw, at } of batch) {
      if (meaning.kind !== 'unreadable') continue
      const { seq, reason } = meaning
      log.warn({ seq, reason }, 'stream: a frame cannot be read; it is kept in quarantine')
      await store.quarantine({ at, source: 'stream', reason, bytes: raw.slice(0, QUARANTINED) })
    }
    const made = batchOf(batch)
    const first = fresh ? (began ?? lowestSeq(batch)) : began
    await commit(
      first === began || first === null ? made : { ...made, checkpoints: { [STREAM_BEGAN]: first } },
    )
    began = first
    if (made.cursor !== undefined) {
      status.lastSeq = made.cursor
      observer.streamCommitted(made.cursor)
    }
    failures = 0
  }

  /** `retry:` is a floor: the slot of the connection that ended is freed late. */
  const floor = (): number => Math.min(RETRY_CAP, Math.max(0, retry))

  const closed = async (saved: string | null, openedAt: number): Promise<End> => {
    const moved = (await cursorToUse()) !== saved
    if (resumeAt === null) {
      // A service that closes at once, again and again, is not hurried by a `retry:` of nothing.
      failures = moved || clock.steady() - openedAt >= RETRY_CAP ? 0 : failures + 1
      const wait = failures === 0 ? floor() : backoff(FAILURE, failures, random, floor())
      return { reason: 'closed', error: 'the service closed the stream', wait }
    }
    log.info({ fromSeq: resumeAt }, 'stream: the replay stopped at its limit, asking for the rest')
    // A replay that stops where it began would go round for ever.
    return { reason: 'replay_stop', error: null, wait: moved ? 0 : Math.max(FAILURE.base, floor()) }
  }

  const broken = async (error: unknown, cursor: string | null): Promise<End> => {
    if (!running) return { reason: 'stopped', error: null, wait: 0 }
    failures++
    const wait = backoff(FAILURE, failures, random, floor())
    const message = messageOf(error)
    if (error instanceof ServiceError) {
      log.warn(
        { code: error.code, status: error.status, requestId: error.requestId, wait },
        `stream: ${message}`,
      )
      if (cursor !== null && [400, 404, 410].includes(error.status)) {
        await loseCursor(cursor, `the service refused the cursor: ${message}`)
        return { reason: 'cursor_lost', error: message, wait }
      }
      return { reason: error.code, error: message, wait: Math.max(wait, error.retryAfter ?? 0) }
    }
    if (error instanceof NetworkFault) log.warn({ reason: error.kind, wait }, `stream: ${message}`)
    else log.error({ err: error, wait }, 'stream: could not go on')
    return { reason: error instanceof NetworkFault ? error.kind : 'failed', error: message, wait }
  }

  const cursorToUse = async (): Promise<string | null> => {
    const saved = await store.checkpoint(STREAM_CURSOR)
    if (saved !== null) return saved
    if (lost || options.startFrom === 'now') return null
    return options.startFrom === 'beginning' ? '0' : options.startFrom.seq
  }

  /** What a stopped replay names may lie before what we have, whose repeats are deduplicated, and before our beginning. */
  const startOfReplay = (saved: string | null, opening: Opening | null): string | null => {
    const stopped = resumeAt
    resumeAt = null
    if (saved === null) return opening === null ? null : (stopped ?? '0')
    if (stopped === null || !isBefore(stopped, saved)) return saved
    return began !== null && isBefore(stopped, began) ? began : stopped
  }

  /** The transcript has a gap now, which no reading fills; states are read anew. */
  const loseCursor = async (cursor: string, why: string): Promise<void> => {
    log.error({ cursor }, `stream: ${why}; going on with live frames, reading all sessions anew`)
    await store.setCheckpoint(STREAM_CURSOR, null)
    await store.setCheckpoint(STREAM_OPENED, null)
    await store.setCheckpoint(STREAM_BEGAN, null)
    lost = true
    await commit({ hints: [sweepHint(clock.now())] })
  }

  return {
    start() {
      running = true
      status = { ...status, state: 'connecting', since: clock.now() }
      service.onAuthorization((authorized) => {
        if (authorized) wake?.()
        else abort?.abort()
      })
      done = run().catch((error: unknown) => log.error({ err: error }, 'stream: stopped'))
    },
    async stop(grace) {
      running = false
      abort?.abort()
      wake?.()
      // A session that is looked up for a frame may hang: what was not committed comes again after the next start.
      const { promise, resolve } = Promise.withResolvers<void>()
      const limit = clock.after(grace, resolve)
      await Promise.race([done, promise])
      limit.cancel()
    },
    connected: () => status.state === 'live',
    status: () => status,
  }
}

function sweepHint(at: number): Hint {
  return { sessionId: null, channel: 'poll', at, scope: 'turns', delay: 0 }
}
