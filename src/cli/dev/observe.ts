import { FINAL_CALL_STATES, type Call } from '../../core/call.ts'
import type { Attempt } from '../../core/delivery.ts'
import { CHANNELS, type Channel, type Fact, type Seen } from '../../core/fact.ts'
import type { DevRecord } from './record.ts'
import type { Titles } from './titles.ts'

/** What the sidecar tells of itself while it works. */
export interface Observer {
  fact(fact: Fact): void
  attempt(made: {
    handler: string
    fact: Fact
    number: number
    attempt: Attempt
    result: 'delivered' | 'retry' | 'dead'
  }): void
  call(call: Call): void
}

/** Turns what the sidecar tells of itself into the records that `dev` prints. */
export function observer(print: (record: DevRecord) => void, titles: Titles): Observer {
  return {
    fact({ id, type, sessionId, at, seen }) {
      const first = firstOf(seen)
      print({
        kind: 'fact',
        at,
        type,
        id,
        session: titles(sessionId),
        channel: first?.channel ?? null,
        ms: first === null ? null : Math.max(0, at - first.at),
      })
    },
    attempt({ handler, fact, number, attempt, result }) {
      print({
        kind: 'callback',
        at: attempt.at + attempt.ms,
        handler,
        type: fact.type,
        session: titles(fact.sessionId),
        status: attempt.status ?? null,
        error: attempt.error ?? null,
        ms: attempt.ms,
        attempt: number,
        result,
      })
    },
    call(call) {
      if (!FINAL_CALL_STATES.includes(call.state)) return
      const at = call.endedAt ?? call.receivedAt
      print({
        kind: 'tool',
        at,
        name: call.name,
        session: titles(call.sessionId),
        state: call.state,
        outcome: call.outcome,
        output: call.result?.text ?? null,
        ms: at - call.receivedAt,
      })
    },
  }
}

function firstOf(seen: Seen): { channel: Channel; at: number } | null {
  let first: { channel: Channel; at: number } | null = null
  for (const channel of CHANNELS) {
    const at = seen[channel]
    if (at !== undefined && (first === null || at < first.at)) first = { channel, at }
  }
  return first
}
