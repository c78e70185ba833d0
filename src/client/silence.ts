import type { SilenceWatchdog } from '../protocol/connection.ts'

/**
 * The next chunk of a body; null at its end. Only the wait for a chunk counts as silence: a reader that takes a minute over
 * one is not the service's silence.
 * @throws {NetworkFault}
 */
export async function nextChunk(
  chunks: AsyncIterator<Uint8Array, unknown>,
  silence: SilenceWatchdog,
): Promise<Uint8Array | null> {
  silence.wait()
  try {
    const next = await chunks.next()
    return next.done === true ? null : next.value
  } catch (error) {
    throw silence.fault ?? error
  } finally {
    silence.heard()
  }
}
