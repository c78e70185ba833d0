import { FIXED_ERROR, TOOLS } from '../configuration.ts'
import type { Fault } from '../fault.ts'
import { outputOf } from '../mood.ts'
import type { Evidence } from './evidence.ts'
import { postings, type Posting } from './postings.ts'

/** What the emulator and the program say of the person's own answers. */
const RUN_IN_PROCESS = 'throws'

/** I3, I4: one key and one body for the answer to a call; after a refused output its error, once and for all. */
export function sameAnswers({ world }: Evidence): Fault[] {
  const faults: Fault[] = []
  const before = new Map<string, Posting>()
  for (const posting of postings(world)) {
    const last = before.get(posting.callId)
    before.set(posting.callId, posting)
    const { callId, kind, text, key } = posting
    if (last === undefined || (last.kind === kind && last.text === text)) {
      if (last !== undefined && last.key !== key)
        faults.push({ invariant: 'I3', message: `${callId} was answered under ${last.key} and ${key}` })
      continue
    }
    const refused = last.status !== null && last.status >= 400 && last.status < 500
    if (last.kind === 'output' && kind === 'error' && refused) continue
    world.tally.add('answers with two bodies')
    faults.push({
      invariant: 'I4',
      message: `${callId} was answered with "${last.text}", then with "${text}"`,
    })
  }
  return faults
}

/** I4: the model has what the tool said to this very call, or the fixed error. */
export function rightAnswers({ ledger }: Evidence): Fault[] {
  const names = new Map(ledger.actions.map(({ call_id, name }) => [call_id, name]))
  return ledger.answers
    .filter(({ call_id, output, error }) =>
      output === null ? error !== FIXED_ERROR : output !== outputOf(names.get(call_id) ?? '', call_id),
    )
    .map(({ call_id, output, error }) => ({
      invariant: 'I4',
      message: `the model got "${output ?? error}" by ${call_id}`,
    }))
}

/** I3 and I5, by what the tools saw. Callbacks name their second alone, which is exact enough to never be wrong. */
export function runs({ world: { app }, calls }: Evidence): Fault[] {
  const rows = new Map(calls.map((row) => [row.call_id, row]))
  const charged = new Map<string, number>()
  const faults: Fault[] = []
  for (const { name, call, headers } of app.runs) {
    const { call_id: id } = call
    const row = rows.get(id)
    if (headers['idempotency-key'] !== id)
      faults.push({ invariant: 'I3', message: `${id} ran under ${String(headers['idempotency-key'])}` })
    if (row === undefined) {
      faults.push({ invariant: 'I5', message: `${id} ran and is not written down` })
      continue
    }
    const sent = Number(headers['webhook-timestamp'])
    if (row.finished_at !== null && sent > Math.floor(row.finished_at / 1000))
      faults.push({ invariant: 'I5', message: `${id} was sent to ${name} after its result was stored` })
    if (name === 'charge') charged.set(id, (charged.get(id) ?? 0) + 1)
  }
  for (const [id, count] of charged)
    if (count > 1)
      faults.push({ invariant: 'I5', message: `${id} must run once at the most and ran ${count} times` })
  return faults
}

/**
 * I1 and I15: every call that waits for us was accepted, and every accepted call has ended and was
 * reported.
 */
export function closed({ ledger, calls, facts }: Evidence): Fault[] {
  const reported = new Set(
    facts
      .filter(({ type }) => type.startsWith('call.'))
      .map(({ body }) => (JSON.parse(body) as { call: { call_id: string } }).call.call_id),
  )
  const faults = calls.flatMap(({ call_id: id, ended_at, state, outcome }): Fault[] => {
    if (ended_at === null) return [{ invariant: 'I15', message: `${id} is still ${state}` }]
    return reported.has(id)
      ? []
      : [{ invariant: 'I1', message: `no fact reports that ${id} is ${state} (${outcome})` }]
  })
  const rows = new Map(calls.map((row) => [row.call_id, row]))
  // In whatever way: the service's word stands beside.
  const replied = new Set(ledger.answers.map(({ call_id }) => call_id))
  for (const { call_id: id, name, type, resolved_at, resolution } of ledger.actions) {
    if (type !== 'function_call') continue
    const row = rows.get(id)
    if (resolved_at === null && name in TOOLS) faults.push({ invariant: 'I15', message: `${id} still waits` })
    if (row === undefined) {
      if (resolution?.kind === 'output' || resolution?.kind === 'error')
        faults.push({ invariant: 'I4', message: `${id} was answered and not accepted` })
      continue
    }
    if (row.state === 'answered' && row.outcome !== 'unknown' && !replied.has(id))
      faults.push({
        invariant: 'I15',
        message: `${id} is answered (${row.outcome}), and the service never heard of it`,
      })
    if (name === RUN_IN_PROCESS && row.result_kind === 'output')
      faults.push({ invariant: 'I4', message: `${id} has an output, and its tool only throws` })
  }
  return faults
}
