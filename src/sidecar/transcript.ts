import type { Log } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import { beginItems } from './intake/items.ts'
import { forgetCursor } from './source/cursor.ts'

/** What the last run took its transcript from. */
const TRANSCRIPT = 'transcript'

/**
 * Frames and items have ids of their own. Changing between them starts a new transcript at this start, which repeats
 * nothing that was delivered.
 */
export async function markTranscript(store: Store, log: Log, source: 'stream' | 'items'): Promise<void> {
  const before = await store.settings.checkpoint(TRANSCRIPT)
  if (before === source) return
  if (before !== null) {
    log.warn({ before, now: source }, 'the transcript has a new source and starts again here')
    await (source === 'stream' ? forgetCursor(store) : beginItems(store))
  }
  await store.settings.setCheckpoint(TRANSCRIPT, source)
}
