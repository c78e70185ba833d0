import type { Fact } from '../../core/fact.ts'
import type { EndedTurn, Meaning } from '../../protocol/frame.ts'
import { joinScopes, type Hint } from '../../core/hint.ts'
import { isBefore } from '../../core/seq.ts'
import type { Batch } from '../../core/store.ts'

/** Frames and characters committed in one transaction. */
const BATCH_FRAMES = 1000
const BATCH_CHARACTERS = 1024 * 1024
/** Sessions of which we remember that a hint was given, so that the first frame of a new one makes us look. */
const SESSIONS_REMEMBERED = 10_000
/** The first frame of a session that says nothing of states still asks for a look, milliseconds. */
const FIRST_FRAME_DELAY = 30

/** A frame that waits for the disk. */
export interface Pending {
  meaning: Extract<Meaning, { kind: 'fact' | 'unreadable' }>
  /** The bytes of a frame that cannot be read, as text. */
  raw: string
  at: number
}

export function charactersOf({ meaning, raw }: Pending): number {
  return meaning.kind === 'fact' ? meaning.fact.body.length : raw.length
}

/** How many of `pending` go into one transaction. */
export function batchSize(pending: readonly Pending[]): number {
  let characters = 0
  let count = 0
  for (const entry of pending) {
    characters += charactersOf(entry)
    if (count > 0 && (count >= BATCH_FRAMES || characters > BATCH_CHARACTERS)) break
    count++
  }
  return count
}

/** The first of the seqs in `batch`, whatever order it came in; null when it has none. */
export function lowestSeq(batch: readonly Pending[]): string | null {
  let lowest: string | null = null
  for (const { meaning } of batch) {
    if (meaning.seq !== null && (lowest === null || isBefore(meaning.seq, lowest))) lowest = meaning.seq
  }
  return lowest
}

/** Makes the commit of frames: facts, the hints that follow from them, and the cursor that they move. */
export function createBatcher(): (batch: readonly Pending[]) => Batch {
  const hinted = new Set<string>()

  return (batch) => {
    const facts: Fact[] = []
    const hints: Hint[] = []
    const endedTurns: EndedTurn[] = []
    let cursor: string | undefined
    for (const { meaning, at } of batch) {
      const { seq } = meaning
      if (seq !== null && (cursor === undefined || isBefore(cursor, seq))) cursor = seq
      if (meaning.kind === 'unreadable') continue
      facts.push(meaning.fact)
      if (meaning.ended !== null) endedTurns.push(meaning.ended)
      hints.push(...meaning.hints)
      const { sessionId } = meaning.fact
      if (sessionId === null || hinted.has(sessionId)) continue
      if (hinted.size >= SESSIONS_REMEMBERED) hinted.clear()
      hinted.add(sessionId)
      if (meaning.hints.length === 0) {
        hints.push({ sessionId, channel: 'stream', at, scope: 'session', delay: FIRST_FRAME_DELAY })
      }
    }
    return { facts, hints: merge(hints), endedTurns, ...(cursor === undefined ? {} : { cursor }) }
  }
}

/** Hints of a batch, one a session and subject: a thousand frames of one session ask for one reading. */
function merge(hints: readonly Hint[]): Hint[] {
  const merged = new Map<string, Hint>()
  for (const hint of hints) {
    const key = `${hint.sessionId ?? ''}\0${hint.subject ?? ''}`
    const other = merged.get(key)
    if (other === undefined) merged.set(key, hint)
    else {
      const scope = joinScopes(hint.scope, other.scope)
      merged.set(key, { ...other, scope, delay: Math.min(hint.delay, other.delay) })
    }
  }
  return [...merged.values()]
}
