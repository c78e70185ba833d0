import type { Fault, LedgerCall, Posting, Run, ServiceCall } from './history.ts'

/** I1, I4, I5 and I15: what became of every function call, by the service and by our ledger. `reported`: ids of ended calls. */
export function calls(
  ledger: readonly LedgerCall[],
  service: readonly ServiceCall[],
  reported: ReadonlySet<string>,
): Fault[] {
  const theirs = new Map(service.map((call) => [call.call_id, call]))
  const rows = new Map<string, LedgerCall>()
  const faults: Fault[] = []
  for (const row of ledger) {
    const { call_id: id } = row
    if (rows.has(id)) faults.push({ invariant: 'I5', message: `${id} was forgotten and accepted again` })
    rows.set(id, row)
    const call = theirs.get(id)
    if (call === undefined)
      faults.push({ invariant: 'I15', message: `${id} is in the ledger and never existed` })
    else if (row.ended_at === null) faults.push({ invariant: 'I15', message: `${id} is still ${row.state}` })
    else {
      if (!reported.has(id)) faults.push({ invariant: 'I1', message: `no fact reports the end of ${id}` })
      faults.push(...disagreement(row, call))
    }
  }
  for (const { call_id: id, ours, open, answered } of service) {
    if (rows.has(id)) continue
    if (ours && open) faults.push({ invariant: 'I15', message: `${id} waits and was not accepted` })
    if (answered) faults.push({ invariant: 'I4', message: `${id} was answered and not accepted` })
  }
  return faults
}

function disagreement(row: LedgerCall, { open, answered, refused, notDelivered }: ServiceCall): Fault[] {
  const { call_id: id, state, outcome } = row
  const wrong = (why: string): Fault[] => [
    { invariant: 'I15', message: `${id} is ${state} (${outcome}), and the service ${why}` },
  ]
  if (open) return wrong('still waits for it')
  if (state === 'answered' && !answered && outcome !== 'unknown' && notDelivered !== true)
    return wrong('accepted no answer')
  if (state === 'failed' && answered && !refused && outcome === 'expired') return wrong('accepted the answer')
  if (state === 'answered' && outcome === 'not_delivered') return wrong('did not deliver it')
  return state === 'not_delivered' && notDelivered === false ? wrong('held the call') : []
}

/**
 * I3 and I4: one key and one body for the answer to a call, and after a refused output its error, once and for all. An
 * output that the network delays may arrive after the error: what was sent first counts as first.
 * `keyed`: whether the service takes keys; without them it must not accept the same thing twice.
 */
export function answers(postings: readonly Posting[], keyed = true): Fault[] {
  const faults: Fault[] = []
  const before = new Map<string, Posting[]>()
  const inOrder = postings.toSorted((a, b) => (a.times?.sent ?? 0) - (b.times?.sent ?? 0))
  for (const posting of inOrder) {
    const { call_id: id, kind, text, key } = posting
    const earlier = before.get(id) ?? []
    const last = earlier.at(-1)
    before.set(id, [...earlier, posting])
    if (keyed && key === null) faults.push({ invariant: 'I3', message: `${id} was answered without a key` })
    if (last === undefined) continue
    const same = last.kind === kind && last.text === text
    if (same && keyed && last.key !== key)
      faults.push({ invariant: 'I3', message: `${id} was answered under ${last.key} and ${key}` })
    if (same && !keyed && isAccepted(last) && isAccepted(posting))
      faults.push({ invariant: 'I3', message: `the service accepted the same answer twice: ${id}` })
    if (!same && !(last.kind === 'output' && kind === 'error' && isRefused(last, posting)))
      faults.push({ invariant: 'I4', message: `${id} was answered with "${last.text}", then with "${text}"` })
    if (!same && keyed && last.key === key)
      faults.push({ invariant: 'I3', message: `${id} was answered in two ways under ${key}` })
  }
  return faults
}

/** Whether the service had refused an output when its error was sent. */
function isRefused({ status, times }: Posting, error: Posting): boolean {
  const refused = status !== null && status >= 400 && status < 500
  return refused && (times === null || error.times === null || times.arrived <= error.times.sent)
}

function isAccepted({ status }: Posting): boolean {
  return status !== null && status < 300
}

/** I3 and I5: a run has its call's id as its key; tools of `once` run once at the most. */
export function runs(runs: readonly Run[], once: ReadonlySet<string>): Fault[] {
  const ran = new Set<string>()
  return runs.flatMap(({ call_id: id, name, key }) => {
    const faults: Fault[] = []
    if (key !== id) faults.push({ invariant: 'I3', message: `${id} runs under the key ${key}` })
    if (once.has(name) && ran.has(id))
      faults.push({ invariant: 'I5', message: `${id} ran twice though it must not` })
    ran.add(id)
    return faults
  })
}
