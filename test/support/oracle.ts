import { setTimeout as pause } from 'node:timers/promises'
import { answers, runs } from '../checker/calls.ts'
import { deliveries } from '../checker/deliveries.ts'
import type { DeliveryStatus, Fault, Posting, ServiceHistory } from '../checker/history.ts'
import { actions, contents, identities, order, transcript, turns, underWay } from '../checker/reports.ts'
import type { Event } from './app.ts'
import type { Rig } from './rig.ts'

export interface OracleOptions {
  handler?: string
  /** Events before this seq happened before the sidecar looked. */
  afterSeq?: number
  /** False where no stream hands over the transcript. */
  transcript?: boolean
  /** Deliveries that a test means to lose. */
  dead?: number
  /** Names of the tools that the sidecar runs. */
  tools?: readonly string[]
  /** Sessions that the sidecar does not see: settled before its start, or another sidecar's. */
  except?: readonly string[]
  /** True: the books are older than what was delivered. What has passed by since is then not in them. */
  restored?: boolean
}

/**
 * How long nothing more may be delivered while something disagrees, milliseconds: to be slow is no fault. On PostgreSQL a
 * killed process keeps its leases for 15 s, and the next one begins only then.
 */
const PATIENCE = 30_000

/** Facts of states that pass: the service does not show them afterwards (src/sidecar/README.md, Facts). */
const PASSING = /^(session\.(working|idle|requires_action|failed)|action\.|call\.)/

/**
 * Waits until what the application received, what the sidecar reports and what the service did agree in everything that
 * the README promises; fails with what still disagrees.
 */
export async function assertWhole(rig: Rig, options: OracleOptions = {}): Promise<void> {
  const begun = performance.now()
  let limit = begun + PATIENCE
  let most = 0
  for (;;) {
    const lasting = lastingFaults(rig, options)
    const faults = lasting.length > 0 ? lasting : await faultsOf(rig, options)
    if (faults.length === 0) return
    const delivered = rig.app.delivered(options.handler).length
    if (delivered > most) limit = performance.now() + PATIENCE
    most = delivered
    // A wrong order or a second id does not become right.
    if (lasting.length > 0 || performance.now() > limit) {
      const messages = faults.slice(0, 30).map(({ invariant, message }) => `${invariant}: ${message}`)
      throw new Error(`${faults.length} disagreements:\n${messages.join('\n')}`)
    }
    // To look takes from what is looked at: both are in this process.
    await pause(Math.min(100, Math.max(10, (performance.now() - begun) / 10)))
  }
}

function lastingFaults({ app }: Rig, { handler, restored = false }: OracleOptions): Fault[] {
  const seen = app.seen(handler)
  // What comes again after a restore has its id, and shows the resource as it is then.
  const same = restored ? [] : contents(seen)
  return [...identities(seen), ...same, ...order(app.delivered(handler))]
}

async function faultsOf(rig: Rig, options: OracleOptions): Promise<Fault[]> {
  const service = serviceOf(rig, options)
  const events = rig.app.delivered(options.handler)
  const faults = [
    ...underWay(rig.emulator.ledger()),
    ...(options.transcript === false ? [] : transcript(service, events)),
    ...turns(service, events),
    ...actions(service, events),
    ...calls(rig, events, options),
  ]
  // Only asked when all else agrees: it costs requests.
  return faults.length > 0 || rig.program === null ? faults : await booked(rig, options)
}

/** What the sidecar has to report. */
function serviceOf({ emulator }: Rig, { afterSeq = 0, except = [] }: OracleOptions): ServiceHistory {
  const { events, sessions, turns, actions } = emulator.ledger()
  const seen = ({ session_id: id }: { session_id: string }): boolean => !except.includes(id)
  return {
    events: events.filter(({ seq }) => seq > afterSeq).filter(seen),
    sessions,
    turns: turns.filter(seen),
    actions: actions.filter(seen),
  }
}

/** Every call that the sidecar was asked to run has one answer, and its end was reported. */
function calls(
  { app, client, emulator }: Rig,
  events: readonly Event[],
  { tools = [], except = [] }: OracleOptions,
): Fault[] {
  const ledger = emulator.ledger()
  const ended = new Set(events.map(({ data }) => data.call?.call_id))
  const ran = new Set(app.runs.map(({ call }) => call.call_id))
  const postings = ledger.answers.filter(
    ({ session_id, token_id }) => !except.includes(session_id) && token_id !== client.token.id,
  )
  const answered = new Set(postings.map(({ call_id }) => call_id))
  const broken = ledger.actions
    .filter(({ session_id }) => !except.includes(session_id))
    .flatMap(({ call_id: id, type, name, resolved_at, resolution }): string[] => {
      if (type !== 'function_call' || !tools.includes(name))
        return answered.has(id) ? [`${type} ${id} is not ours and was answered`] : []
      if (resolved_at === null) return [`call ${id} waits`]
      return [
        ...(ended.has(id) ? [] : [`call ${id} (${resolution?.kind}): no call.* event`]),
        ...(answered.has(id) && !ran.has(id) ? [`call ${id} was answered and its tool never ran`] : []),
      ]
    })
  return [
    ...broken.map((message) => ({ invariant: 'I15', message })),
    ...answers(
      postings.map(({ call_id, output, error, idempotency_key: key }): Posting => ({
        call_id,
        kind: output === null ? 'error' : 'output',
        text: String(output ?? error),
        key,
        status: null,
        times: null,
      })),
      postings.some(({ idempotency_key: key }) => key !== null),
    ),
    ...runs(
      app.runs.map(({ call, name, headers }) => ({
        call_id: call.call_id,
        name,
        key: String(headers['idempotency-key']),
      })),
      new Set(),
    ),
  ]
}

/** The sidecar's own books: nothing pending, nothing dead that should not be, every event delivered once. */
async function booked(
  rig: Rig,
  { dead = 0, handler = 'app', restored = false }: OracleOptions,
): Promise<Fault[]> {
  const books = await rig.list(`/api/deliveries?handler=${handler}`)
  const entries = books.map(({ fact_id, type, status }) => ({
    id: String(fact_id),
    type: String(type),
    handler,
    status: status as DeliveryStatus,
  }))
  const delivered = rig.app.delivered(handler)
  const taken = new Set(delivered.map(({ id }) => id))
  const lost = entries.filter(({ status }) => status === 'dead').length
  const facts = new Set(entries.map(({ id }) => id))
  const unknown = delivered.filter(({ id, type }) => !facts.has(id) && !(restored && PASSING.test(type)))
  return [
    ...deliveries(entries, (_handler, id) => ({ taken: taken.has(id), heard: taken.has(id), givenUp: true })),
    ...(lost === dead ? [] : [{ invariant: 'I10', message: `${lost} deliveries are dead, not ${dead}` }]),
    ...unknown.map(({ id, type }) => ({
      invariant: 'I1',
      message: `${id} (${type}) was delivered and is not in the books`,
    })),
  ]
}
