import type { Clock } from '../../../std/ports.ts'
import { isBefore } from '../../../core/seq.ts'
import type { StoredFact } from '../../../core/fact.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import { factFrame, stopFrame } from './frame.ts'
import type { Hub, Reader } from './hub.ts'

/** The most frames of one replay; its last frame names the seq from which to ask again (rule LIM-33). */
const REPLAYED = 50_000

/** A reader whose progress can be awaited. */
export interface PacedReader extends Reader {
  readonly closed: boolean
  /** Resolves when the reader has read everything that was written, or has disconnected. */
  drained(): Promise<void>
  /** Ends the response after everything that was written. */
  end(): void
}

/**
 * Sends a reader the frames of the log after `cursor`, at its own pace, and then joins it to the live frames, without a
 * gap or a duplicate.
 * @returns `limit`: the replay reached its limit and was ended; `left`: the reader disconnected before the end of the
 * replay.
 */
export async function replay(
  parts: {
    hub: Hub
    store: Pick<StoreReader, 'placeOf' | 'frames'>
    clock: Clock
    /** Gets the number of frames written. */
    onSent: (count: number) => void
  },
  reader: PacedReader,
  cursor: string,
): Promise<'live' | 'limit' | 'left'> {
  const { hub, store, clock, onSent } = parts
  const session = reader.sessionId === null ? {} : { sessionId: reader.sessionId }
  const place = await store.placeOf(cursor)
  let { pos } = place
  // If the frame of the cursor is in this log, the reader has all frames before it. Otherwise the frame was pruned, or
  // the cursor is of another log: frames up to its seq are left out, wherever they are.
  const isUnseen = ({ seq }: StoredFact): boolean => seq !== null && (place.stored || isBefore(cursor, seq))
  let last = cursor
  let sent = 0
  while (!reader.closed) {
    const published = hub.lastPos
    const { frames, next, more } = await store.frames({ after: pos, ...session })
    const unseen = frames.filter(isUnseen)
    const page = unseen.slice(0, REPLAYED - sent)
    sent += page.length
    last = page.at(-1)?.seq ?? last
    if (page.length > 0) {
      reader.write(Buffer.concat(page.flatMap((fact) => factFrame(fact)?.bytes ?? [])))
      onSent(page.length)
    }
    if (page.length < unseen.length) {
      reader.write(stopFrame(last))
      reader.end()
      return 'limit'
    }
    pos = next
    await reader.drained()
    // Frames that were published during this read may be after what it returned; earlier ones are in it, or were
    // pruned.
    if (!more && hub.lastPos <= Math.max(pos, published)) {
      // If the position of the cursor is known, seqs are not compared: frames that are held now come later, with lower
      // ones.
      hub.join(reader, { pos, seq: place.stored ? null : cursor })
      return 'live'
    }
    await new Promise<void>((resolve) => clock.soon(resolve))
  }
  return 'left'
}
