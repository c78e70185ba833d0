import type { Emulator } from '../../emulator/index.ts'
import { CHANNELS, type Channel, type Seen } from '../../core/fact.ts'
import type { CallReport, Observer } from '../../core/observer.ts'
import type { DevRecord } from './record.ts'

/** The title of a session for people, or its id where it has none. */
type Titles = (sessionId: string | null) => string

/** The title is requested from the emulator once per session. */
export function titlesOf(emulator: Pick<Emulator, 'ledger'>): Titles {
  const titles = new Map<string, string>()
  return (sessionId) => {
    if (sessionId === null) return '(all sessions)'
    if (!titles.has(sessionId)) {
      // The largest cursor: no events are needed.
      const { sessions } = emulator.ledger(Number.MAX_SAFE_INTEGER)
      for (const { id, title } of sessions) titles.set(id, title)
    }
    return titles.get(sessionId) ?? sessionId
  }
}

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

/**
 * Prints what happens with the user's own app. Sessions are shown by their ids, and runs of tools without an output
 * are shown, too.
 */
export function appObservers(show: { record(record: DevRecord): void }): Partial<Observer>[] {
  const print = (record: DevRecord): void => show.record(record)
  const titles: Titles = (sessionId) => sessionId ?? '(all)'
  return [observer(print, titles), runObserver(print, titles)]
}

/** The runs without an output, for the developer of the tool. */
function runObserver(print: (record: DevRecord) => void, titles: Titles): Partial<Observer> {
  return {
    toolRun(report) {
      if (report.outcome !== 'output')
        print({ kind: 'run', at: Date.now(), session: titles(report.sessionId), report })
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
