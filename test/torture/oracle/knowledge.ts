import { underWay } from '../../support/oracle.ts'
import type { Fault } from '../fault.ts'
import type { Evidence } from './evidence.ts'

/** What still goes on at the service: there is no rest before that ends. */
export function busy({ ledger }: Evidence): Fault[] {
  return underWay(ledger).map((message) => ({ invariant: 'rest', message }))
}

/** I15: what the program believes is what the service says. */
export function agreed({ ledger, sessions, turns, openActions }: Evidence): Fault[] {
  const faults: Fault[] = []
  const broken = (message: string): void => void faults.push({ invariant: 'I15', message })
  const rows = new Map(sessions.map((row) => [row.id, row]))
  const open = new Set(openActions)
  for (const { id, status, deleted_at: deletedAt, required } of ledger.sessions) {
    const row = rows.get(id)
    if (deletedAt !== null) {
      if (row !== undefined && row.deleted_at === null) broken(`${id} is gone and we do not know it`)
      continue
    }
    if (row === undefined) broken(`${id} is not known`)
    else if (row.deleted_at !== null) broken(`${id} lives and we believe it gone`)
    else if (row.status !== status) broken(`${id} is ${status} and we believe ${row.status}`)
    for (const callId of required)
      if (!open.delete(callId)) broken(`${id} waits for ${callId} and we do not know it`)
  }
  for (const callId of open) broken(`we believe that ${callId} is required`)
  const known = new Map(turns.map((row) => [row.id, row]))
  const gone = new Set(ledger.sessions.filter(({ deleted_at }) => deleted_at !== null).map(({ id }) => id))
  for (const { id, session_id, status, artifacts } of ledger.turns) {
    if (gone.has(session_id)) continue
    const raw = known.get(id)?.raw ?? null
    const shown = raw === null ? null : (JSON.parse(raw) as { status: string; artifacts?: string | null })
    if (shown?.status !== status || (shown.artifacts ?? null) !== artifacts)
      broken(`turn ${id} is ${status}/${artifacts} and we believe ${shown?.status}/${shown?.artifacts}`)
  }
  return faults
}

/** I1, I3: the log has every event and every end once. */
export function once({ facts }: Evidence): Fault[] {
  const ids = new Map<string, string>()
  const faults: Fault[] = []
  for (const { id, seq, type, turn_id, family } of facts) {
    const key =
      seq === null
        ? family === 'state' && type.startsWith('turn.')
          ? `${type} ${turn_id}`
          : id
        : `seq ${seq}`
    const other = ids.get(key) ?? id
    if (other !== id) faults.push({ invariant: 'I3', message: `${key} is stored as ${other} and as ${id}` })
    ids.set(key, id)
  }
  return faults
}
