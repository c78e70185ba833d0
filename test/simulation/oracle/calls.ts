import { answers, calls } from '../../checker/calls.ts'
import {
  firstFault,
  type Fault,
  type LedgerCall,
  type Posting,
  type ServiceCall,
} from '../../checker/history.ts'
import { TOOLS } from '../scenario.ts'
import type { Posting as ServicePosting } from '../service/host.ts'
import type { ModelCall } from '../service/state.ts'
import type { Simulation } from '../simulation.ts'

const NAMES: readonly string[] = TOOLS

/** What became of every function call, as the service and as our ledger have it. */
export function callFaults({ state, db }: Simulation): Fault | null {
  const ledger = db.prepare<[], LedgerCall>('SELECT call_id, state, outcome, ended_at FROM all_calls').all()
  const reported = db
    .prepare<[], string>(
      "SELECT json_extract(body, '$.call.call_id') FROM all_facts WHERE type LIKE 'call.%'",
    )
    .pluck()
    .all()
  const waiting = new Set(
    state
      .alive()
      .filter(({ fate }) => fate === 'ours')
      .flatMap(({ actions }) => actions.map(({ callId }) => callId)),
  )
  const service = [...state.calls.values()].map((call) => callOf(call, waiting))
  return firstFault(() => calls(ledger, service, new Set(reported)))
}

function callOf(call: ModelCall, waiting: ReadonlySet<string>): ServiceCall {
  const { callId, plan, goneAt, taken, refused, notDelivered } = call
  return {
    call_id: callId,
    ours: waiting.has(callId) && NAMES.includes(plan.tool),
    open: goneAt === null,
    answered: taken !== null,
    refused,
    notDelivered,
  }
}

/** One key for one effect: an answer or a message. */
export function keyFaults({ host, state }: Simulation): Fault | null {
  const keyed = !state.details.absent.has('idempotency header')
  const effects = host.postings.filter(
    ({ operation }) => operation === 'message' || (operation === 'answer' && keyed),
  )
  return firstFault(() => answers(effects.map(postingOf), keyed))
}

function postingOf({ operation, body, key, status, sent, at }: ServicePosting): Posting {
  const times = { sent, arrived: at }
  if (operation === 'message') return { call_id: body, kind: 'output', text: body, key, status, times }
  const given = JSON.parse(body) as { call_id: string; output?: string; error?: string }
  const kind = given.output === undefined ? 'error' : 'output'
  return { call_id: given.call_id, kind, text: String(given[kind]), key, status, times }
}
