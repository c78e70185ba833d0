import type { StoredFact } from '../../core/fact.ts'
import type { TransientEvent } from '../../core/observer.ts'

/** A transient event in the form of a fact. It is never stored. */
export function transientFact({ id, type, sessionId, body, at }: TransientEvent): StoredFact {
  return {
    pos: 0,
    id,
    type,
    sessionId,
    turnId: null,
    at,
    family: 'transcript',
    seq: null,
    body,
    seen: { stream: at },
    subject: null,
  }
}
