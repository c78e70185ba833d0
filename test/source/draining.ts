import { StreamConnection } from '../../src/protocol/connection.ts'
import type { Frame } from '../../src/protocol/frame.ts'
import {
  drain,
  FrameQueue,
  giveWay,
  HeldTime,
  type Pending,
  type Undelivered,
} from '../../src/sidecar/source/batch.ts'
import { MemoryWindow } from '../../src/sidecar/deliver/lane.ts'
import type { Clock } from '../../src/std/ports.ts'

export interface DrainOptions {
  chunks: AsyncIterable<Uint8Array>
  connection: AbortController
  /** What is to be kept of a frame: null when nothing is, `stop` when the connection has said all. */
  accept: (frame: Frame) => Pending | null | 'stop'
  commit: (batch: readonly Pending[]) => Promise<void>
  onRetry?: (ms: number) => void
  onPing?: () => void
  undelivered?: Undelivered
  clock: Clock
  held?: HeldTime
}

/** One connection, drained as the stream source does it. */
export async function drainChunks(options: DrainOptions): Promise<void> {
  const { chunks, connection, accept, commit, clock } = options
  const queue = new FrameQueue(commit, () => connection.abort(), clock, options.held ?? new HeldTime(clock))
  const listener = {
    onFrame: (frame: Frame): string | null => {
      const kept = accept(frame)
      if (kept !== null && kept !== 'stop') queue.push(kept)
      return kept === 'stop' ? '1' : null
    },
    onStop: () => undefined,
    onRetry: options.onRetry ?? (() => undefined),
    onPing: options.onPing ?? (() => undefined),
  }
  await drain(new StreamConnection(chunks, connection, listener, clock), queue, () =>
    giveWay(clock, options.undelivered ?? new MemoryWindow(), queue),
  )
}
