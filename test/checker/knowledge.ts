import type { Fault, Knowledge, ServiceSession, ServiceTurn } from './history.ts'

/** Whether the sidecar has to know what became of a session: it does, it must not follow it, or either is right. */
export type Following = 'follows' | 'ignores' | 'either'

/** I15: what the sidecar knows equals what the service says. */
export function knowledge(
  service: {
    sessions: readonly (ServiceSession & { following?: Following; noticed?: boolean })[]
    turns: readonly ServiceTurn[]
  },
  known: Knowledge,
): Fault[] {
  const faults: Fault[] = []
  const broken = (message: string): void => void faults.push({ invariant: 'I15', message })
  const open = new Set(known.openActions.map(({ call_id }) => call_id))
  for (const session of service.sessions) {
    const { id, status, required, following = 'follows', noticed = true } = session
    const row = known.sessions.get(id)
    if (following === 'either') for (const callId of required) open.delete(callId)
    else if (following === 'ignores') {
      if (row?.deleted_at === null) broken(`${id} is not ours and we follow it`)
    } else if (session.deleted_at !== null) {
      if (noticed && row?.deleted_at === null) broken(`${id} is gone and we do not know it`)
      if (row?.deleted_at !== null) continue
      for (const action of known.openActions) if (action.session_id === id) open.delete(action.call_id)
    } else if (row === undefined) broken(`${id} is not known`)
    else {
      if (row.deleted_at !== null) broken(`${id} lives and we believe it gone`)
      if (row.status !== status) broken(`${id} is ${status} and we believe ${row.status}`)
      if ((row.updated_at ?? Infinity) < Math.floor(session.created_at ?? 0))
        broken(`${id} was updated before it was made`)
      for (const callId of required)
        if (!open.delete(callId)) broken(`${id} waits for ${callId} and we do not know it`)
    }
  }
  for (const callId of open) broken(`we believe that ${callId} is required`)
  for (const { id, status, artifacts } of service.turns) {
    const raw = known.turns.get(id) ?? null
    const shown = raw === null ? null : (JSON.parse(raw) as { status: string; artifacts?: string | null })
    if (shown?.status !== status || (shown.artifacts ?? null) !== artifacts)
      broken(`${id} is ${status}/${artifacts} and we believe ${shown?.status}/${shown?.artifacts}`)
  }
  return faults
}
