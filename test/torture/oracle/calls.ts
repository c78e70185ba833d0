import { answers, calls as ended, runs as rightRuns } from '../../checker/calls.ts'
import type { Fault } from '../../checker/history.ts'
import { FIXED_ERROR, TOOLS } from '../configuration.ts'
import { outputOf } from '../mood.ts'
import type { Evidence } from './evidence.ts'
import { postings } from './postings.ts'

/** A tool that only throws. */
const RUN_IN_PROCESS = 'throws'
/** A tool that must not run twice. */
const ONCE = new Set(['charge'])

export function sameAnswers({ world }: Evidence): Fault[] {
  const faults = answers(postings(world))
  if (faults.length > 0) world.tally.add('answers that differ', faults.length)
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

/** By what the tools saw. Callbacks name their second alone, which is exact enough to never be wrong. */
export function runs({ world: { app }, calls }: Evidence): Fault[] {
  const rows = new Map(calls.map((row) => [row.call_id, row]))
  const faults = app.runs.flatMap(({ name, call, headers }): Fault[] => {
    const { call_id: id } = call
    const row = rows.get(id)
    if (row === undefined) return [{ invariant: 'I5', message: `${id} ran and is not written down` }]
    const sent = Number(headers['webhook-timestamp'])
    if (row.finished_at === null || sent <= Math.floor(row.finished_at / 1000)) return []
    return [{ invariant: 'I5', message: `${id} was sent to ${name} after its result was stored` }]
  })
  const seen = app.runs.map(({ name, call: { call_id }, headers }) => ({
    call_id,
    name,
    key: String(headers['idempotency-key']),
  }))
  return [...rightRuns(seen, ONCE), ...faults]
}

/** Every call that waits for us was accepted, and every accepted call has ended and was reported. */
export function closed({ ledger, calls, facts }: Evidence): Fault[] {
  const reported = new Set(
    facts
      .filter(({ type }) => type.startsWith('call.'))
      .map(({ body }) => (JSON.parse(body) as { call: { call_id: string } }).call.call_id),
  )
  // In whatever way: the service's word stands beside.
  const replied = new Set(ledger.answers.map(({ call_id }) => call_id))
  const outputs = new Set(
    calls.flatMap(({ call_id, result_kind: kind }) => (kind === 'output' ? call_id : [])),
  )
  const service = ledger.actions.filter(({ type }) => type === 'function_call')
  const impossible = service.filter(({ call_id, name }) => name === RUN_IN_PROCESS && outputs.has(call_id))
  return [
    ...ended(
      calls,
      service.map(({ call_id, name, resolved_at, resolution }) => ({
        call_id,
        ours: name in TOOLS,
        open: resolved_at === null && name in TOOLS,
        answered: replied.has(call_id) || resolution?.kind === 'output' || resolution?.kind === 'error',
        refused: false,
        notDelivered: null,
      })),
      reported,
    ),
    ...impossible.map(({ call_id: id }) => ({
      invariant: 'I4',
      message: `${id} has an output, and its tool only throws`,
    })),
  ]
}
