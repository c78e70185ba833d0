import { PRUNED_SEQ } from '../../core/checkpoint.ts'
import { isBefore } from '../../core/seq.ts'
import { ResumePoint } from '../../protocol/resume-point.ts'
import type { Store } from '../../core/store.ts'

/** The highest seq that was committed. */
const STREAM_CURSOR = 'stream'
/** A cursor that was let go of: the next connection gives live frames, whatever `start_from` says. */
const FROM_NOW = ''
/** The first seq of a transcript that had no cursor to begin from. */
export const STREAM_BEGAN = 'stream_began'
/** When we first followed the stream without a cursor, as opening.ts notes it. */
export const STREAM_OPENED = 'stream_opened'

/** First start only (README, Configuration). */
export type StartFrom = 'now' | 'beginning' | { seq: string }

/** From where the stream is asked for. */
export interface Cursor {
  /** What is followed from; null where there is nothing yet, and the news has to be found. */
  saved(): Promise<string | null>
  /** A replay stopped at its limit; `seq` is from where the rest is to be asked for. */
  stopAt(seq: string): void
  /** From where the rest of a replay that stopped is still to be asked for. */
  readonly stoppedAt: string | null
  /** What the next connection asks from. `replaying`: without a cursor, all is replayed and the news is sifted from it. */
  next(saved: string | null, replaying: boolean): Promise<string | null>
  /** The connection was refused, or broke before it was known that all it brought is stored. */
  broken(saved: string | null, opened: boolean): void
  /** The next frames are the first of a transcript without a cursor: with them goes the checkpoint STREAM_BEGAN. */
  readonly beginning: boolean
  /** It was committed. */
  begunAt(seq: string): void
  /** False for what lies before the beginning, which a service that repeats itself may show after it. */
  isOurs(seq: string | null): boolean
  /** The service refused it: live frames until the next one is committed. */
  lose(): Promise<void>
}

/** The next connection gives live frames: what there was before has been told, or is lost. */
export async function forgetCursor(store: Pick<Store, 'settings'>): Promise<void> {
  for (const name of [STREAM_OPENED, STREAM_BEGAN, PRUNED_SEQ]) await store.settings.setCheckpoint(name, null)
  // Last: after a crash in between there still is a cursor, to be let go of.
  await store.settings.setCheckpoint(STREAM_CURSOR, FROM_NOW)
}

export function createCursor(store: Store, startFrom: StartFrom): Cursor {
  const point = new ResumePoint()
  let began: string | null = null
  let beginning = false

  return {
    async saved() {
      const saved = await store.settings.checkpoint(STREAM_CURSOR)
      if (saved === FROM_NOW) return null
      if (saved !== null) return saved
      if (startFrom === 'now') return null
      return startFrom === 'beginning' ? '0' : startFrom.seq
    },
    stopAt: (seq) => point.stopAt(seq),
    get stoppedAt() {
      return point.stoppedAt
    },
    get beginning() {
      return beginning
    },
    begunAt(seq) {
      began = seq
      beginning = false
    },
    isOurs: (seq) => began === null || seq === null || !isBefore(seq, began),
    async next(saved, replaying) {
      began = await store.settings.checkpoint(STREAM_BEGAN)
      beginning = saved === null && began === null
      // What lies before the beginning was never ours.
      const cursor = point.next(saved, began)
      if (saved !== null) return cursor
      return replaying ? (cursor ?? '0') : null
    },
    broken(saved, opened) {
      if (!opened) point.refused()
      // What came before the stop may not have been stored: without a cursor only the beginning is sure to hold it.
      else if (saved === null) point.forget()
    },
    async lose() {
      point.forget()
      await forgetCursor(store)
    },
  }
}
