import type { StoredFact } from '../../core/fact.ts'
import type { TransientEvent } from '../../core/observer.ts'
import { transientId } from '../../core/transient.ts'

let made = 0

/** A transient event in the form of a fact. It is never stored, and its id is used only once. */
export function transientFact({ type, sessionId, body, at }: TransientEvent): StoredFact {
  return {
    pos: 0,
    id: transientId(at, made++),
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
