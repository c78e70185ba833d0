import { PRUNED_SEQ } from '../../core/checkpoint.ts'
import type { Store } from '../../core/store.ts'

/** The highest seq that was committed. */
const STREAM_CURSOR = 'stream'
/** A cursor that was let go of: the next connection gives live frames, whatever `start_from` says. */
const FROM_NOW = ''
/** The first seq of a transcript that had no cursor to begin from. */
export const STREAM_BEGAN = 'stream_began'
/** When we first followed the stream without a cursor, as opening.ts notes it. */
export const STREAM_OPENED = 'stream_opened'

/** First start only (config/README.md, Configuration). */
export type StartFrom = 'now' | 'beginning' | { seq: string }

/** The next connection gives live frames: what there was before was delivered, or is lost. */
export async function forgetCursor(store: Pick<Store, 'settings'>): Promise<void> {
  for (const name of [STREAM_OPENED, STREAM_BEGAN, PRUNED_SEQ]) await store.settings.setCheckpoint(name, null)
  // Last: after a crash in between there still is a cursor, to be let go of.
  await store.settings.setCheckpoint(STREAM_CURSOR, FROM_NOW)
}

/** What is followed from; null where there is nothing yet, and what is new has to be found. */
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
