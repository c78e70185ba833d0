import { fanOut, type Observer } from '../../src/core/observer.ts'

/**
 * The counts that one process reported, and the expected counts from its peers. They must be equal.
 */
export interface Counts {
  facts: number
  /** By handler and outcome. */
  callbacks: Map<string, number>
  /** The number of reports of the end of each call. */
  calls: Map<string, number>
  /** How often each call without a tool was reported. */
  strange: Map<string, number>
  expected: {
    /** New facts in commits that came back. */
    facts: number
    /** Calls that were closed in commits that came back. */
    closed: Set<string>
    /** Required calls of a function that is no tool, in commits that came back. */
    strange: Set<string>
    /** By handler over HTTP: events whose answer came. What comes while it stops need not be counted. */
    answers: Map<string, Answers>
  }
}

export interface Answers {
  delivered: number
  failed: number
  late: number
}

export function newCounts(): Counts {
  return {
    facts: 0,
    callbacks: new Map(),
    calls: new Map(),
    strange: new Map(),
    expected: { facts: 0, closed: new Set(), strange: new Set(), answers: new Map() },
  }
}

export function counting(counts: Counts): Observer {
  return fanOut([
    {
      fact: () => void counts.facts++,
      callback: ({ handler, outcome }) => more(counts.callbacks, `${handler} ${outcome}`),
      call: ({ callId }) => more(counts.calls, callId),
      callWithoutTool: ({ callId }) => more(counts.strange, callId),
    },
  ])
}

function more(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
