import { CHANNELS, type Channel, type Seen } from '../../core/fact.ts'
import type { CallReport, Observer, ToolRunReport } from '../../core/observer.ts'
import type { DevRecord } from './record.ts'
import type { Titles } from './titles.ts'

/** Turns the reports of the sidecar into the records that `dev` prints. */
export function observer(print: (record: DevRecord) => void, titles: Titles): Partial<Observer> {
  return {
    fact({ id, type, sessionId, at, seen }, lag) {
      const ms = lag === null ? null : lag * 1000
      print({ kind: 'fact', at, type, id, session: titles(sessionId), channel: firstOf(seen), ms })
    },
    callback({ fact, outcome, attempt, number, wait }) {
      print({
        kind: 'callback',
        at: attempt.at + attempt.ms,
        type: fact.type,
        id: fact.id,
        session: titles(fact.sessionId),
        status: attempt.status ?? null,
        error: attempt.error ?? attempt.answer ?? null,
        wait,
        ms: attempt.ms,
        attempt: number,
        outcome,
      })
    },
    call({ call, outcome }: CallReport) {
      const at = call.endedAt ?? call.receivedAt
      print({
        kind: 'tool',
        at,
        name: call.name,
        session: titles(call.sessionId),
        outcome,
        answer: call.result,
        ms: at - call.receivedAt,
      })
    },
  }
}

/** The runs without an output, for the developer of the tool. */
export function runObserver(print: (record: DevRecord) => void, titles: Titles): Partial<Observer> {
  return {
    toolRun({ tool: name, sessionId, outcome, seconds, attempt, error }: ToolRunReport) {
      if (outcome === 'output') return
      const [, digits] = / answered (\d{3})$/.exec(error ?? '') ?? []
      const status = outcome === 'deferred' ? 202 : digits === undefined ? null : Number(digits)
      const [at, session, ms] = [Date.now(), titles(sessionId), seconds * 1000]
      print({ kind: 'run', at, name, session, status, error, ms, attempt })
    },
  }
}

function firstOf(seen: Seen): Channel | null {
  let first: Channel | null = null
  for (const channel of CHANNELS) {
    if ((seen[channel] ?? Infinity) < (first === null ? Infinity : (seen[first] ?? Infinity))) first = channel
  }
  return first
}
