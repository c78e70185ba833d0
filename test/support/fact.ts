import { stateFactId, streamFactId, type Fact, type StateType } from '../../src/core/fact.ts'

/** A frame of the stream as a fact. */
export function frameFact(
  seq: number | string,
  sessionId: string | null = 'ses_1',
  more: Partial<Fact> = {},
): Fact {
  const type = more.type ?? 'agent.message'
  return {
    id: streamFactId(String(seq), sessionId),
    type,
    sessionId,
    turnId: null,
    at: 1_763_701_200_000,
    family: 'transcript',
    seq: String(seq),
    body: `{"type":"${type}","seq":${seq},"payload":{"text":"frame ${seq}"},"internal_type":null}`,
    seen: {},
    subject: null,
    ...more,
  }
}

/** A fact of state about the turn `key`. */
export function turnFact(type: StateType, key: string, sessionId = 'ses_1', more: Partial<Fact> = {}): Fact {
  return {
    id: stateFactId(type, key),
    type,
    sessionId,
    turnId: key,
    at: 1_763_701_200_000,
    family: 'state',
    seq: null,
    body: `{"turn":{"id":"${key}","status":"completed"},"session":{"title":null,"metadata":{},"status":"idle"}}`,
    seen: {},
    subject: `turn.final/${key}`,
    ...more,
  }
}
