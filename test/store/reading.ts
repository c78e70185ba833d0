import type { Reading } from '../../src/core/store.ts'

/** A reading that found its session at rest, with nothing new; `session: null`: it was deleted. */
export function readingOf(sessionId: string, more: Partial<Reading>): Reading {
  return {
    sessionId,
    revision: null,
    session: null,
    baseline: 0,
    atRest: true,
    turns: [],
    opened: [],
    resolved: [],
    newCalls: [],
    facts: [],
    at: 1000,
    hint: { claim: null, lookAfter: null, scope: 'session' },
    ...more,
  }
}
