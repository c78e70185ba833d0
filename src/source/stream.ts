import { createParser, type EventSourceParser } from 'eventsource-parser'
import { backoff } from '../core/backoff.ts'
import { messageOf, NetworkFault, ServiceError } from '../core/errors.ts'
import type { Hint } from '../core/hint.ts'
import type { JsonObject } from '../core/json.ts'
import type { ChannelStatus, Observer } from '../core/observer.ts'
import type { Clock, Log, Random, Service, Timer } from '../core/ports.ts'
import type { Batch, Store } from '../core/store.ts'
import type { Frame, Meaning } from '../core/frame.ts'

/** The service pings every 15 s: three missed ones are a dead connection, milliseconds. */
const SILENCE = 45_000
/** Without a `retry:` hint, long enough for the service to free the slot of the last connection, milliseconds. */
const RETRY_DEFAULT = 5000
const RETRY_CAP = 60_000
const FAILURE = { base: 1000, max: 60_000 }
/** One frame, characters. The service's largest body is 16 MiB. */
const MAX_FRAME = 16 * 1024 * 1024
/** Frames and characters committed in one transaction. */
const BATCH_FRAMES = 1000
const BATCH_CHARACTERS = 1024 * 1024
/** What may wait for the disk before we stop reading, characters. The service drops a reader at 8 MiB. */
const MAX_PENDING = 4 * 1024 * 1024
/** Sessions of which we remember that a hint was given, so that the first frame of a new one makes us look. */
const SESSIONS_REMEMBERED = 10_000
/** How much of a frame that cannot be read is kept, characters. */
const QUARANTINED = 64 * 1024

export const STREAM_CURSOR = 'stream'

export interface TransientEvent {
  type: string
  sessionId: string | null
  body: JsonObject
  at: number
}

export interface StreamSource {
  start(): void
  stop(): Promise<void>
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

/**
 * Follows the organization-wide stream: one connection at a time, drained into the store as fast as it comes, resumed at
 * the last committed seq. Nothing here waits for a handler.
 */
export function createStream(options: StreamOptions): StreamSource {
  const { service, store, commit, observer, clock, random, log } = options
  const hinted = new Set<string>()
  let abort: AbortController | null = null
  let running = false
  let done: Promise<void> = Promise.resolve()
  let wake: (() => void) | null = null
  /** Milliseconds, from the service's `retry:`. */
  let retry = RETRY_DEFAULT
  let failures = 0
  let resumeAt: string | null = null
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
      const end = await connect()
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

  interface End {
    reason: string
    error: string | null
    /** Milliseconds before the next connection. */
    wait: number
  }

  const connect = async (): Promise<End> => {
    become('connecting')
    const saved = await firstCursor()
    // What a stopped replay names may lie before what we have: the repeats are deduplicated.
    const cursor = saved !== null && resumeAt !== null && isBefore(resumeAt, saved) ? resumeAt : saved
    resumeAt = null
    abort = new AbortController()
    const { signal } = abort
    try {
      const chunks = await service.openStream(cursor, signal)
      become('live', null)
      log.info({ cursor }, 'stream: connected')
      // Without a cursor what happened before this moment is in no replay.
      if (cursor === null) await commit({ hints: [sweepHint(clock.now())] })
      const stopped = await drain(chunks, cursor, abort)
      if (stopped !== null) {
        resumeAt = stopped
        // A replay that stops where it began would go round for ever.
        const moved = (await store.checkpoint(STREAM_CURSOR)) !== saved
        log.info({ fromSeq: stopped }, 'stream: the replay stopped at its limit, asking for the rest')
        return { reason: 'replay_stop', error: null, wait: moved ? 0 : floor() }
      }
      failures = 0
      return { reason: 'closed', error: 'the service closed the stream', wait: floor() }
    } catch (error) {
      return await ended(error, cursor)
    } finally {
      abort.abort()
      abort = null
    }
  }

  /** `retry:` is a floor: the slot of the connection that ended is freed late. */
  const floor = (): number => Math.min(RETRY_CAP, Math.max(0, retry))

  const ended = async (error: unknown, cursor: string | null): Promise<End> => {
    if (!running) return { reason: 'stopped', error: null, wait: 0 }
    failures++
    const wait = backoff(FAILURE, failures, random, floor())
    const message = messageOf(error)
    if (error instanceof ServiceError) {
      log.warn(
        { code: error.code, status: error.status, requestId: error.requestId, wait },
        `stream: ${message}`,
      )
      if (cursor !== null && (error.status === 400 || error.status === 404 || error.status === 410)) {
        await loseCursor(cursor, `the service refused the cursor: ${message}`)
        return { reason: 'cursor_lost', error: message, wait }
      }
      return { reason: error.code, error: message, wait: Math.max(wait, error.retryAfter ?? 0) }
    }
    const reason = error instanceof NetworkFault ? error.kind : 'failed'
    if (error instanceof NetworkFault) log.warn({ reason, wait }, `stream: ${message}`)
    else log.error({ err: error, wait }, 'stream: could not go on')
    return { reason, error: message, wait }
  }

  const firstCursor = async (): Promise<string | null> => {
    const saved = await store.checkpoint(STREAM_CURSOR)
    if (saved !== null) return saved
    if (options.startFrom === 'now') return null
    return options.startFrom === 'beginning' ? '0' : options.startFrom.seq
  }

  /** The transcript has a gap now, which no reading fills; states are read anew. */
  const loseCursor = async (cursor: string, why: string): Promise<void> => {
    log.error({ cursor }, `stream: ${why}; going on with live frames, reading all sessions anew`)
    await store.setCheckpoint(STREAM_CURSOR, null)
    await commit({ hints: [sweepHint(clock.now())] })
  }

  /** Reads until the connection ends. @returns the seq of a replay that stopped, null otherwise. */
  const drain = async (
    chunks: AsyncIterable<Uint8Array>,
    cursor: string | null,
    connection: AbortController,
  ): Promise<string | null> => {
    let pending: Pending[] = []
    let characters = 0
    let writing: Promise<void> | null = null
    let failure: unknown = null
    let stop: string | null = null
    let highest = cursor
    let lastByte = clock.steady()

    const accept = (frame: Frame): void => {
      const at = clock.now()
      const meaning = options.readFrame(frame, at)
      if (meaning.kind === 'stop') stop = meaning.fromSeq
      else if (meaning.kind === 'transient') {
        observer.frame({ type: meaning.type, seq: null, at })
        options.onTransient({ type: meaning.type, sessionId: meaning.sessionId, body: meaning.body, at })
      } else {
        const { seq } = meaning
        if (meaning.kind === 'fact') observer.frame({ type: meaning.fact.type, seq: meaning.seq, at })
        pending.push({ meaning, raw: meaning.kind === 'fact' ? '' : frame.data, at })
        characters += frame.data.length
        if (highest !== null && seq !== null && isBefore(seq, highest) && !warned) {
          warned = true
          log.warn(
            { seq, cursor: highest },
            'stream: frames from before the cursor came; they are deduplicated',
          )
        }
        if (seq !== null && (highest === null || isBefore(highest, seq))) highest = seq
      }
      if (meaning.kind !== 'transient') status.lastEventAt = at
    }
    let warned = false

    const parser: EventSourceParser = createParser({
      maxBufferSize: MAX_FRAME,
      onEvent: ({ event, id, data }) => accept({ event, id, data }),
      onRetry: (value) => {
        retry = value
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded')
          failure = new NetworkFault('other', 'a frame is longer than 16 MiB')
      },
    })

    const write = async (): Promise<void> => {
      while (pending.length > 0) {
        const batch = pending.splice(0, sizeOf(pending))
        for (const { meaning, raw } of batch)
          characters -= meaning.kind === 'fact' ? meaning.fact.body.length : raw.length
        await commitBatch(batch)
      }
    }
    const pump = (): void => {
      writing ??= write()
        .catch((error: unknown) => {
          failure = error
          connection.abort()
        })
        .finally(() => {
          writing = null
        })
    }

    const watchdog = watch(() => {
      if (clock.steady() - lastByte < SILENCE) return
      failure = new NetworkFault('timeout', `nothing came for ${SILENCE / 1000} s`)
      connection.abort()
    })
    const decoder = new TextDecoder()
    try {
      for await (const chunk of chunks) {
        lastByte = clock.steady()
        parser.feed(decoder.decode(chunk, { stream: true }))
        if (failure !== null || stop !== null) break
        if (pending.length > 0) pump()
        // The disk is slower than the network: let the service wait rather than our memory grow.
        while (characters > MAX_PENDING && writing !== null) await writing
        lastByte = clock.steady()
      }
    } catch (error) {
      if (failure === null && stop === null) failure = error
    } finally {
      watchdog.cancel()
      connection.abort()
    }
    while (writing !== null) await writing
    // What came before the connection broke is whole: it counts.
    if (pending.length > 0) await write()
    if (failure !== null) throw failure
    return stop
  }

  const watch = (check: () => void): Timer => {
    let timer = clock.after(SILENCE / 9, tick)
    function tick(): void {
      check()
      timer = clock.after(SILENCE / 9, tick)
    }
    return { cancel: () => timer.cancel() }
  }

  const commitBatch = async (batch: readonly Pending[]): Promise<void> => {
    const facts = []
    const hints: Hint[] = []
    const endedTurns = []
    let cursor: string | undefined
    for (const { meaning, raw, at } of batch) {
      const { seq } = meaning
      if (seq !== null && (cursor === undefined || isBefore(cursor, seq))) cursor = seq
      if (meaning.kind === 'unreadable') {
        log.warn({ seq, reason: meaning.reason }, 'stream: a frame cannot be read; it is kept in quarantine')
        await store.quarantine({
          at,
          source: 'stream',
          reason: meaning.reason,
          bytes: raw.slice(0, QUARANTINED),
        })
        continue
      }
      facts.push(meaning.fact)
      if (meaning.ended !== null) endedTurns.push(meaning.ended)
      hints.push(...meaning.hints)
      const { sessionId } = meaning.fact
      if (sessionId !== null && !hinted.has(sessionId)) {
        if (hinted.size >= SESSIONS_REMEMBERED) hinted.clear()
        hinted.add(sessionId)
        if (meaning.hints.length === 0)
          hints.push({ sessionId, channel: 'stream', at, scope: 'session', delay: 30 })
      }
    }
    await commit({ facts, hints: merge(hints), endedTurns, ...(cursor === undefined ? {} : { cursor }) })
    if (cursor !== undefined) status.lastSeq = cursor
    failures = 0
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
    async stop() {
      running = false
      abort?.abort()
      wake?.()
      await done
    },
    connected: () => status.state === 'live',
    status: () => status,
  }
}

interface Pending {
  meaning: Extract<Meaning, { kind: 'fact' | 'unreadable' }>
  raw: string
  at: number
}

function sizeOf(pending: readonly Pending[]): number {
  let characters = 0
  let count = 0
  for (const { meaning, raw } of pending) {
    characters += meaning.kind === 'fact' ? meaning.fact.body.length : raw.length
    if (count > 0 && (count >= BATCH_FRAMES || characters > BATCH_CHARACTERS)) break
    count++
  }
  return count
}

/** Hints of a batch, one a session and subject: a thousand frames of one session ask for one reading. */
function merge(hints: readonly Hint[]): Hint[] {
  const merged = new Map<string, Hint>()
  for (const hint of hints) {
    const key = `${hint.sessionId ?? ''}\0${hint.subject ?? ''}`
    const other = merged.get(key)
    if (other === undefined) merged.set(key, hint)
    else if (hint.scope === 'turns' || hint.delay < other.delay) {
      merged.set(key, {
        ...other,
        scope: hint.scope === 'turns' ? 'turns' : other.scope,
        delay: Math.min(hint.delay, other.delay),
      })
    }
  }
  return [...merged.values()]
}

function sweepHint(at: number): Hint {
  return { sessionId: null, channel: 'poll', at, scope: 'turns', delay: 0 }
}

/** Compares two seqs by value whatever their length. What is no number is never before anything. */
function isBefore(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length
}
