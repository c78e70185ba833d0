import type { Simulation } from '../simulation.ts'
import { TOOLS } from '../scenario.ts'
import type { Fault } from './rest.ts'

interface CallRow {
  call_id: string
  name: string
  state: string
  outcome: string | null
  ended_at: number | null
}

/** I3, I5 and I15: what became of every function call, as the service and as our ledger have it. */
export function callFaults({ state, db }: Simulation): Fault | null {
  const rows = db.prepare<[], CallRow>('SELECT call_id, name, state, outcome, ended_at FROM all_calls').all()
  const closed = new Set(
    db
      .prepare<[], string>(
        "SELECT json_extract(body, '$.call.call_id') FROM all_facts WHERE type LIKE 'call.%'",
      )
      .pluck()
      .all(),
  )
  const seen = new Set<string>()
  for (const row of rows) {
    if (seen.has(row.call_id))
      return { invariant: 'I5', message: `${row.call_id} was forgotten and taken on again` }
    seen.add(row.call_id)
    const call = state.calls.get(row.call_id)
    if (call === undefined)
      return { invariant: 'I15', message: `${row.call_id} is in the ledger and never was` }
    const { taken, notDelivered, refused, open } = call
    if (row.ended_at === null) return { invariant: 'I15', message: `${row.call_id} is still ${row.state}` }
    if (!closed.has(row.call_id))
      return { invariant: 'I1', message: `no fact reports the end of ${row.call_id}` }
    const wrong = (why: string): Fault => ({
      invariant: 'I15',
      message: `${row.call_id} is ${row.state} (${row.outcome}), and the service ${why}`,
    })
    if (open) return wrong('still waits for it')
    if (row.state === 'answered' && taken === null && row.outcome !== 'unknown' && !notDelivered)
      return wrong('took no answer')
    if (row.state === 'failed' && taken !== null && !refused && row.outcome === 'expired')
      return wrong('took the answer')
    if (row.state === 'answered' && row.outcome === 'not_delivered') return wrong('did not deliver it')
    if (row.state === 'not_delivered' && !notDelivered) return wrong('held the call')
  }
  const known = new Set(rows.map(({ call_id }) => call_id))
  for (const session of state.alive()) {
    if (session.fate !== 'ours') continue
    for (const { call } of session.actions)
      if (call !== null && isOurs(call.plan.tool) && !known.has(call.callId))
        return { invariant: 'I15', message: `${call.callId} waits and was not accepted` }
  }
  return null
}

function isOurs(name: string): boolean {
  return (TOOLS as readonly string[]).includes(name)
}

/** I3: one key for one effect; the fixed error after a refused output is another. Without keys: each effect once. */
export function keyFaults({ host, state }: Simulation): Fault | null {
  if (state.details.absent.has('idempotency header')) return takenTwice(host.postings)
  const used = new Map<string, string>()
  for (const { operation, callId, key, body } of host.postings) {
    if (operation === 'create webhook') continue
    const effect = operation === 'answer' ? `answer ${callId} ${body}` : `message ${body}`
    const other = used.get(effect)
    if (key === null || (other !== undefined && other !== key))
      return { invariant: 'I3', message: `${effect} went under the keys ${other} and ${key}` }
    used.set(effect, key)
  }
  return null
}

function takenTwice(postings: Simulation['host']['postings']): Fault | null {
  const taken = new Set<string>()
  for (const { operation, body, status } of postings) {
    if (operation !== 'message' || status >= 300) continue
    if (taken.has(body)) return { invariant: 'I3', message: `the service took a message twice: ${body}` }
    taken.add(body)
  }
  return null
}
