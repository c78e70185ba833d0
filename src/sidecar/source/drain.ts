import { FrameReader, SilenceWatchdog } from '../../protocol/connection.ts'
import type { Frame } from '../../protocol/frame.ts'
import type { Clock } from '../../std/ports.ts'
import { batchSize, charactersOf, type Pending } from './batch.ts'

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
  const silence = new SilenceWatchdog(clock, connection)
  const reader = new FrameReader({
    onFrame: (frame) => {
      const accepted = options.accept(frame)
      if (accepted === 'stop') return true
      if (accepted !== null) {
        pending.push(accepted)
        characters += charactersOf(accepted)
      }
      return false
    },
    onRetry: options.onRetry,
    onPing: options.onPing,
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

  try {
    silence.wait()
    for await (const chunk of chunks) {
      silence.heard()
      reader.read(chunk)
      if (failure !== null || reader.stopped) break
      if (pending.length > 0) startWriting()
      // The disk is slower than the network: let the service wait rather than our memory grow.
      while (characters > MAX_PENDING && disk.writing !== null) await disk.writing
      silence.wait()
    }
  } catch (error) {
    if (failure === null && !reader.stopped) failure = silence.fault ?? error
  } finally {
    silence.stop()
    connection.abort()
  }
  while (disk.writing !== null) await disk.writing
  // What came after a batch that could not be written would move the cursor past it.
  if (!disk.failed) await write()
  if (failure !== null) throw failure
}
