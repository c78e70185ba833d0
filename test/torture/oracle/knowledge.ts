import { reportOf, type Fault } from '../../checker/history.ts'
import { knowledge } from '../../checker/knowledge.ts'
import { identities, underWay } from '../../checker/reports.ts'
import type { Evidence } from './evidence.ts'

export function busy({ ledger }: Evidence): Fault[] {
  return underWay(ledger)
}

export function agreed({ ledger, sessions, turns, openActions }: Evidence): Fault[] {
  const gone = new Set(ledger.sessions.filter(({ deleted_at }) => deleted_at !== null).map(({ id }) => id))
  return knowledge(
    { sessions: ledger.sessions, turns: ledger.turns.filter(({ session_id }) => !gone.has(session_id)) },
    {
      sessions: new Map(sessions.map((row) => [row.id, row])),
      turns: new Map(turns.map(({ id, raw }) => [id, raw])),
      openActions,
    },
  )
}

/** The log has every event and every end once. */
export function once({ facts }: Evidence): Fault[] {
  return identities(facts.map(reportOf))
}
