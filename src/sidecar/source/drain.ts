import { createParser } from 'eventsource-parser'
import { NetworkFault } from '../../std/errors.ts'
import type { Frame } from '../../protocol/frame.ts'
import type { Clock, Timer } from '../../std/ports.ts'
import { batchSize, charactersOf, type Pending } from './batch.ts'
import { createLineCutter, LINE_KEPT } from './lines.ts'

/** The service pings every 15 s: three missed ones are a dead connection, milliseconds. */
const SILENCE = 45_000
const SILENCE_LOOKS = 9
const PING = 'ping'
/** One frame, characters: more than a line gives. */
const MAX_FRAME = 2 * LINE_KEPT
/** What may wait for the disk before we stop reading, characters. The service drops a reader at 8 MiB. */
const MAX_PENDING = 4 * 1024 * 1024

export interface DrainOptions {
  chunks: AsyncIterable<Uint8Array>
  /** Ends the connection. */
  connection: AbortController
  /** What is to be kept of a frame: null when nothing is, `stop` when the connection has said all. */
  accept: (frame: Frame) => Pending | null | 'stop'
  commit: (batch: readonly Pending[]) => Promise<void>
  /** Milliseconds, the service's `retry:`. */
  onRetry: (ms: number) => void
  /** The service is there and has nothing to tell. */
  onPing: () => void
  clock: Clock
}

/**
 * Drains a connection into the store as fast as it comes: reading goes on while a batch is written, and what came
 * together is written together. Returns when the stream ends or said stop; what came whole before is written then.
 * @throws {NetworkFault} when the connection broke, was silent, or sent a frame without end.
 */
export async function drain(options: DrainOptions): Promise<void> {
  const { chunks, connection, clock, commit } = options
  let pending: Pending[] = []
  let characters = 0
  const disk: { writing: Promise<void> | null; failed: boolean } = { writing: null, failed: false }
  let failure: unknown = null
  let stopped = false
  let lastByte = clock.steady()

  const parser = createParser({
    maxBufferSize: MAX_FRAME,
    onEvent: ({ event, id, data }) => {
      if (stopped) return
      const accepted = options.accept({ event, id, data })
      if (accepted === 'stop') stopped = true
      else if (accepted !== null) {
        pending.push(accepted)
        characters += charactersOf(accepted)
      }
    },
    onRetry: options.onRetry,
    onComment: (comment) => {
      if (comment.trim() === PING) options.onPing()
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded')
        failure = new NetworkFault('other', `a frame is longer than ${MAX_FRAME} characters`)
    },
  })

  const write = async (): Promise<void> => {
    while (pending.length > 0) {
      const size = batchSize(pending)
      const batch = size === pending.length ? pending : pending.slice(0, size)
      pending = size === pending.length ? [] : pending.slice(size)
      for (const entry of batch) characters -= charactersOf(entry)
      await commit(batch)
    }
  }

  const startWriting = (): void => {
    disk.writing ??= write()
      .catch((error: unknown) => {
        failure = error
        disk.failed = true
        connection.abort()
      })
      .finally(() => {
        disk.writing = null
      })
  }

  const watchdog = every(clock, SILENCE / SILENCE_LOOKS, () => {
    if (clock.steady() - lastByte < SILENCE) return
    failure = new NetworkFault('timeout', `nothing came for ${SILENCE / 1000} s`)
    connection.abort()
  })
  const decoder = new TextDecoder()
  const cut = createLineCutter()
  try {
    for await (const chunk of chunks) {
      lastByte = clock.steady()
      parser.feed(cut(decoder.decode(chunk, { stream: true })))
      if (failure !== null || stopped) break
      if (pending.length > 0) startWriting()
      // The disk is slower than the network: let the service wait rather than our memory grow.
      while (characters > MAX_PENDING && disk.writing !== null) await disk.writing
      lastByte = clock.steady()
    }
  } catch (error) {
    if (failure === null && !stopped) failure = error
  } finally {
    watchdog.cancel()
    connection.abort()
  }
  while (disk.writing !== null) await disk.writing
  // What came after a batch that could not be written would move the cursor past it.
  if (!disk.failed) await write()
  if (failure !== null) throw failure
}

function every(clock: Clock, ms: number, run: () => void): Timer {
  let timer = clock.after(ms, tick)
  function tick(): void {
    run()
    timer = clock.after(ms, tick)
  }
  return { cancel: () => timer.cancel() }
}
