import { createThrottledLog } from '../../std/throttled-log.ts'
import { messageOf, NetworkFault } from '../../std/errors.ts'
import { ServiceError } from '../../core/errors.ts'
import type { ConnectionEnd } from '../../protocol/connection.ts'
import type { Frame, Meaning } from '../../protocol/frame.ts'
import type { Hint } from '../../core/hint.ts'
import type { ChannelStatus, Observer, TransientEvent } from '../../core/observer.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { transientId } from '../../core/transient.ts'
import { isBefore } from '../../core/seq.ts'
import { ResumableStream } from '../../protocol/resumable-stream.ts'
import { StreamSlot } from '../../protocol/slot.ts'
import type { Batch, Store } from '../../core/store.ts'
import {
  createBatcher,
  drain,
  FrameQueue,
  giveWay,
  HeldTime,
  lowestSeq,
  type Pending,
  type Undelivered,
} from './batch.ts'
import { forgetCursor, savedCursor, STREAM_BEGAN, type StartFrom } from './cursor.ts'
import { createDoubt } from './cursor-doubt.ts'
import { createOpenings, type Opening } from './opening.ts'
import { sinceOf } from './outage.ts'

/** A rejected token is tried again after this time, even when no new token is reported, milliseconds. */
const TOKEN_CHECK = 60_000
/** How much of an unreadable frame is stored, characters. */
const QUARANTINED = 64 * 1024

export interface StreamSource {
  start(): void
  /** Waits for the write under way, `grace` milliseconds at most. */
  stop(grace: number): Promise<void>
  connected(): boolean
  /** How long frames have waited here in all, milliseconds. */
  heldFor(): number
  status(): ChannelStatus
}

/** The part of `Ownership` that the stream needs. */
export interface StreamOwnership {
  publishTransient(event: TransientEvent): void
  /** null: there is room for frames; otherwise the stream waits until the promise resolves. */
  room(signal: AbortSignal): Promise<void> | null
}

export interface StreamOptions {
  service: Service
  store: Store
  /** What a frame means, and the only way to commit facts. */
  intake: {
    readFrame(frame: Frame, at: number): Meaning
    commit(batch: Batch): Promise<unknown>
  }
  /** Receives transient events, and limits the frames that wait for their sessions. */
  ownership: StreamOwnership
  undelivered: Undelivered
  observer: Observer
  clock: Clock
  random: Random
  log: Log
  startFrom: StartFrom
}

/** How a connection ended, and the wait before the next one, milliseconds. */
interface End {
  reason: string
  error: string | null
  wait: number
}

/**
 * Follows the organization-wide stream: one connection at a time, stored as fast as it is received, resumed at the last
 * committed seq. It does not wait for handlers, and only gives way to fast ones (`giveWay`).
 */
export function createStream(options: StreamOptions): StreamSource {
  const { service, store, intake, ownership, observer, clock, random, log } = options
  const batchOf = createBatcher()
  const openings = createOpenings({ ...options, commit: intake.commit })
  const doubt = createDoubt(service)
  const held = new HeldTime(clock)
  // After a restart, the connection of the previous process may still hold a stream slot at the service.
  const resumable = new ResumableStream({ clock, random, slot: new StreamSlot(), slotInUse: true })
  let abort: AbortController | null = null
  let running = false
  let done: Promise<void> = Promise.resolve()
  let wake: (() => void) | null = null
  /** The cursor of this connection; null once a frame from before the cursor was logged. */
  let before: string | null = null
  /** The highest seq that arrived. */
  let latest: string | null = null
  let transients = 0
  /** Whether a frame of this connection was committed. */
  let committed = false
  /** The first seq of a transcript that began without a cursor: frames before it are not ours. */
  let began: string | null = null
  /**
   * The next frames are the first of a transcript without a cursor: the checkpoint STREAM_BEGAN is committed with them.
   */
  let beginning = false
  let status: ChannelStatus = {
    state: 'waiting',
    since: 0,
    lastError: null,
    lastEventAt: null,
    lastSeq: null,
  }

  const become = (state: ChannelStatus['state'], lastError: string | null = status.lastError): void => {
    if (state === status.state && lastError === status.lastError) return
    status = { ...status, state, since: sinceOf(status, state, clock.now()), lastError }
    observer.channel('stream', status)
  }

  const run = async (): Promise<void> => {
    let continuing = false
    while (running) {
      if (!service.authorized()) {
        become('stopped', 'the token was rejected')
        await pause(TOKEN_CHECK)
        continue
      }
      const end: End = await connect(continuing).catch((error: unknown) => {
        if (!running) return { reason: 'stopped', error: null, wait: 0 }
        log.error({ err: error }, 'stream: the store could not be used')
        return { reason: 'failed', error: messageOf(error), wait: resumable.failed() }
      })
      if (!running) break
      continuing = end.reason === 'replay_stop'
      observer.streamReconnect(end.reason)
      // After a rejection of the token, the connection was aborted by us.
      if (end.wait === 0 || !service.authorized()) continue
      become('waiting', end.error)
      await pause(end.wait)
    }
    become('disabled')
  }

  /** Waits `ms`, or until `wake` is called because something has changed. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(ms, resolve)
      wake = () => {
        timer.cancel()
        resolve()
      }
    })

  const connect = async (continuing: boolean): Promise<End> => {
    become('connecting')
    const saved = await savedCursor(store, options.startFrom)
    const opening = saved === null ? await openings.find() : null
    began = await store.settings.checkpoint(STREAM_BEGAN)
    beginning = saved === null && began === null
    // `stop` was called while the store was read: there was no connection to end.
    if (!running) return { reason: 'stopped', error: null, wait: 0 }
    abort = new AbortController()
    committed = false
    let asked: string | null = saved
    let open = false
    try {
      const queue = new FrameQueue(
        (batch) => commitNew(batch, opening),
        () => abort?.abort(),
        clock,
        held,
      )
      const { connection, cursor } = await resumable.connect({
        last: saved,
        first: began,
        // Without a cursor, everything is replayed and `opening` selects the new frames. The very first connection has
        // no old ones.
        start: opening === null ? null : '0',
        abort,
        open(from, signal) {
          asked = from
          return service.openStream(from, signal)
        },
        onFrame: (frame) => accept(frame, opening, queue),
        onPing: () => opening?.ping(),
      })
      open = true
      before = cursor
      if (saved === null) await openings.connected(opening)
      doubt.dispel()
      become('live', null)
      log.info({ cursor }, 'stream: connected')
      // A service that no longer knows the cursor may send live frames without an error. Then no replay contains what
      // happened meanwhile, so all sessions are read.
      if (!continuing) await intake.commit({ hints: [sweepHint(clock.now())] })
      return await ended(
        await drain(connection, queue, () => giveWay(clock, options.undelivered, queue)),
        saved,
      )
    } catch (error) {
      // A replay may have stopped at its limit before this error, and the frames before that stop may not be stored.
      // Without a stored cursor, only a replay from the beginning contains them for certain.
      if (open && saved === null) resumable.forget()
      return await broken(error, asked)
    } finally {
      abort.abort()
      abort = null
    }
  }

  /** Handles one frame. @returns the `from_seq` of a frame that says that the replay stopped. */
  const accept = (frame: Frame, opening: Opening | null, queue: FrameQueue): string | null => {
    const at = clock.now()
    const meaning = intake.readFrame(frame, at)
    if (meaning.kind === 'stop') return meaning.fromSeq
    if (meaning.kind === 'transient') {
      const { type, sessionId, body } = meaning
      observer.frame({ type, seq: null, at })
      opening?.transient(sessionId)
      ownership.publishTransient({
        id: transientId(at, transients++),
        type,
        sessionId,
        body,
        at,
        after: latest,
      })
      return null
    }
    const { seq } = meaning
    status.lastEventAt = at
    if (seq !== null && (latest === null || isBefore(latest, seq))) latest = seq
    opening?.came(seq)
    if (meaning.kind === 'unreadable') queue.push({ meaning, raw: frame.data, at })
    else {
      observer.frame({ type: meaning.name, seq, at })
      if (before !== null && seq !== null && !isBefore(before, seq)) {
        log.warn({ seq, cursor: before }, 'stream: frames from before the cursor came; they are deduplicated')
        before = null
      }
      queue.push({ meaning, raw: '', at })
    }
    return null
  }

  const commitNew = async (batch: readonly Pending[], opening: Opening | null): Promise<void> => {
    const fresh = opening === null ? batch : await opening.sift(batch)
    // A service that repeats frames may send some from before the beginning of the transcript.
    await write(
      began === null
        ? fresh
        : fresh.filter(({ meaning: { seq } }) => seq === null || !isBefore(seq, began ?? '')),
    )
  }

  const logThrottled = createThrottledLog<{ seq: string | null; reason: string }>(clock, (times, frame) =>
    log.error(
      { ...frame, times },
      'stream: a frame cannot be read, and is missing in the transcript; it is kept in quarantine',
    ),
  )

  const write = async (batch: readonly Pending[]): Promise<void> => {
    if (batch.length === 0) return
    for (const { meaning, raw, at } of batch) {
      if (meaning.kind !== 'unreadable') continue
      const { seq, reason } = meaning
      logThrottled({ seq, reason })
      observer.quarantined()
      await store.settings.quarantine({ at, source: 'stream', reason, bytes: raw.slice(0, QUARANTINED) })
    }
    const room = abort === null ? null : ownership.room(abort.signal)
    if (room !== null) await room
    const made = batchOf(batch)
    const first = beginning ? lowestSeq(batch) : null
    await intake.commit(first === null ? made : { ...made, checkpoint: { name: STREAM_BEGAN, to: first } })
    if (first !== null) {
      began = first
      beginning = false
    }
    if (made.cursor !== undefined) {
      status.lastSeq = made.cursor
      observer.streamCommitted(made.cursor)
    }
    committed = true
  }

  const ended = async (how: ConnectionEnd, saved: string | null): Promise<End> => {
    const moved = (await savedCursor(store, options.startFrom)) !== saved
    const wait = resumable.ended(how, { anything: committed, moved })
    if (how === 'closed') return { reason: how, error: 'the service closed the stream', wait }
    log.info(
      { fromSeq: resumable.stoppedAt },
      'stream: the replay stopped at its limit; the rest is requested',
    )
    return { reason: how, error: null, wait }
  }

  const broken = async (error: unknown, cursor: string | null): Promise<End> => {
    if (!running) return { reason: 'stopped', error: null, wait: 0 }
    const wait = resumable.broken(error, committed)
    const message = messageOf(error)
    const refused = await doubt.grows(cursor, error)
    if (error instanceof ServiceError) {
      log.warn(
        { code: error.code, status: error.status, requestId: error.requestId, wait },
        `stream: ${message}`,
      )
      if (refused && cursor !== null) {
        await loseCursor(cursor, `the service refused the cursor: ${message}`)
        return { reason: 'cursor_lost', error: message, wait }
      }
      return { reason: error.code, error: message, wait }
    }
    if (error instanceof NetworkFault) log.warn({ reason: error.kind, wait }, `stream: ${message}`)
    else log.error({ err: error, wait }, 'stream: it failed, and is opened again')
    return { reason: error instanceof NetworkFault ? error.kind : 'failed', error: message, wait }
  }

  /** The transcript now has a gap, which no read fills; the state of all sessions is read again. */
  const loseCursor = async (cursor: string, why: string): Promise<void> => {
    log.error({ cursor }, `stream: ${why}; continuing with live frames, and reading all sessions again`)
    resumable.forget()
    await forgetCursor(store)
    openings.forget()
    await intake.commit({ hints: [sweepHint(clock.now())] })
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
      // A read of a session may hang: frames that were not committed are sent again after the next start.
      const { promise, resolve } = Promise.withResolvers<void>()
      const limit = clock.after(grace, resolve)
      await Promise.race([done, promise])
      limit.cancel()
    },
    connected: () => status.state === 'live',
    heldFor: () => held.ms,
    status: () => status,
  }
}

function sweepHint(at: number): Hint {
  return { sessionId: null, channel: 'poll', at, scope: 'turns', delay: 0 }
}
