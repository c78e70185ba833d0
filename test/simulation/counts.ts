import { fanOut, type Observer } from '../../src/core/observer.ts'

/** What one life said of itself, and what it was told by the others: the same, or it counts wrongly. */
export interface Counts {
  facts: number
  /** By handler and outcome. */
  callbacks: Map<string, number>
  /** How often the end of each call was told. */
  calls: Map<string, number>
  /** How often each call without a tool was reported. */
  strange: Map<string, number>
  told: {
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
    told: { facts: 0, closed: new Set(), strange: new Set(), answers: new Map() },
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
