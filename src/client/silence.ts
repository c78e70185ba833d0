import { NetworkFault } from '../std/errors.ts'
import type { Clock } from '../std/ports.ts'

/** The service pings its streams every 15 s: three missed ones are a dead connection, milliseconds. */
const SILENCE = 45_000

/**
 * The next chunk of a body, or the end of the connection when nothing comes for too long. Only the wait of a reader
 * counts: one that takes its time over a chunk is not the peer's silence.
 * @throws {NetworkFault}
 */
export async function nextChunk(
  chunks: AsyncIterator<Uint8Array, unknown>,
  connection: AbortController,
  clock: Clock,
): Promise<Uint8Array | null> {
  const silent = new NetworkFault('timeout', `nothing came for ${SILENCE / 1000} s`)
  const timer = clock.after(SILENCE, () => connection.abort(silent))
  try {
    const next = await chunks.next()
    return next.done === true ? null : next.value
  } catch (error) {
    throw connection.signal.reason === silent ? silent : error
  } finally {
    timer.cancel()
  }
}
