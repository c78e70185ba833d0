import type { Session } from '../../core/resource.ts'
import type { HintedSession, Reading } from '../../core/store.ts'

/** A reading that tells nothing. */
const NOTHING = {
  turns: [],
  opened: [],
  resolved: [],
  newCalls: [],
  facts: [],
}

/** A reading that takes a session as it is, without facts. */
export function asItIs(
  session: Session,
  more: Pick<Reading, 'revision' | 'baseline' | 'atRest' | 'at'>,
): Omit<Reading, 'hint'> {
  return { ...NOTHING, sessionId: session.id, session, ...more }
}

/** A reading that finds nothing where nothing is known. */
export function nothingThere(sessionId: string, revision: number | null, at: number): Omit<Reading, 'hint'> {
  return { ...NOTHING, sessionId, revision, session: null, baseline: 0, atRest: true, at }
}

/** The channel that told us first is the one that found it; where none did, we looked of our own accord. */
export function firstOf(seen: HintedSession['seen'], now: number): HintedSession['seen'] {
  const [first] = Object.entries(seen).sort(([, a], [, b]) => a - b)
  return first === undefined ? { poll: now } : { [first[0]]: first[1] }
}
