import type { Clock } from '../../../std/ports.ts'
import { isBefore } from '../../../core/seq.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import { factFrame, stopFrame } from './frame.ts'
import type { Hub, Reader } from './hub.ts'

/** Frames of one replay; then the reader is told from where to ask again (rule LIM-33). */
const REPLAYED = 50_000

/** A reader that can be waited for. */
export interface PacedReader extends Reader {
  readonly closed: boolean
  /** Resolves when it has taken what was written, or has left. */
  drained(): Promise<void>
  /** Sends what is written and ends. */
  end(): void
}

/**
 * Hands a reader what the log holds after `cursor`, at its own pace, and then what comes. Between the two nothing is lost
 * and nothing comes twice.
 * @returns `limit` when it had a replay's most and was ended, `left` when it went away before it had everything.
 */
export async function replay(
  parts: {
    hub: Hub
    store: Pick<StoreReader, 'placeOf' | 'frames'>
    clock: Clock
    /** Frames were written to the reader. */
    onSent: (count: number) => void
  },
  reader: PacedReader,
  cursor: string,
): Promise<'live' | 'limit' | 'left'> {
  const { hub, store, clock, onSent } = parts
  const session = reader.sessionId === null ? {} : { sessionId: reader.sessionId }
  let pos = await store.placeOf(cursor)
  let last = cursor
  let sent = 0
  while (!reader.closed) {
    const published = hub.lastPos
    const { frames, next, more } = await store.frames({ after: pos, ...session })
    const news = frames.filter(({ seq }) => seq !== null && isBefore(cursor, seq))
    const page = news.slice(0, REPLAYED - sent)
    sent += page.length
    last = page.at(-1)?.seq ?? last
    if (page.length > 0) {
      reader.write(Buffer.concat(page.flatMap((fact) => factFrame(fact)?.bytes ?? [])))
      onSent(page.length)
    }
    if (page.length < news.length) {
      reader.write(stopFrame(last))
      reader.end()
      return 'limit'
    }
    pos = next
    await reader.drained()
    // What was published while we read may be behind what we have read. What was before is in it, or was pruned.
    if (!more && hub.lastPos <= Math.max(pos, published)) {
      hub.join(reader, { pos, seq: last })
      return 'live'
    }
    await new Promise<void>((resolve) => clock.soon(resolve))
  }
  return 'left'
}
