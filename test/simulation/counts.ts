import { fanOut, type Observer } from '../../src/core/observer.ts'

/** What one life said of itself, for comparing with what happened. */
export interface Counts {
  facts: number
  callbacks: Record<string, number>
  calls: Map<string, number>
}

export function newCounts(): Counts {
  return { facts: 0, callbacks: {}, calls: new Map() }
}

export function counting(counts: Counts): Observer {
  return fanOut([
    {
      fact: () => void counts.facts++,
      callback: ({ outcome }) => {
        counts.callbacks[outcome] = (counts.callbacks[outcome] ?? 0) + 1
      },
      call: ({ callId }) => void counts.calls.set(callId, (counts.calls.get(callId) ?? 0) + 1),
    },
  ])
}
