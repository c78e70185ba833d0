import { PRUNED_SEQ } from '../../core/checkpoint.ts'
import type { Store } from '../../core/store.ts'

/** The highest seq that was committed. */
const STREAM_CURSOR = 'stream'
/** A cursor that was dropped: the next connection gives live frames, whatever `start_from` says. */
const FROM_NOW = ''
/** The first seq of a transcript that began without a cursor. */
export const STREAM_BEGAN = 'stream_began'
/** When the stream was first followed without a cursor, as opening.ts stores it. */
export const STREAM_OPENED = 'stream_opened'

/** Where the stream begins at the first start (config/README.md, Configuration). */
export type StartFrom = 'now' | 'beginning' | { seq: string }

/** The next connection gives live frames: earlier events were delivered, or are lost. */
export async function forgetCursor(store: Pick<Store, 'settings'>): Promise<void> {
  for (const name of [STREAM_OPENED, STREAM_BEGAN, PRUNED_SEQ]) await store.settings.setCheckpoint(name, null)
  // Last, so that after a crash in between there is still a cursor to drop.
  await store.settings.setCheckpoint(STREAM_CURSOR, FROM_NOW)
}

/** The cursor to follow from; null if there is none yet, and the first new frame must be found. */
export async function savedCursor(
  store: Pick<Store, 'settings'>,
  startFrom: StartFrom,
): Promise<string | null> {
  const saved = await store.settings.checkpoint(STREAM_CURSOR)
  if (saved === FROM_NOW) return null
  if (saved !== null) return saved
  if (startFrom === 'now') return null
  return startFrom === 'beginning' ? '0' : startFrom.seq
}
