import { setTimeout as pause } from 'node:timers/promises'
import type { LedgerView } from '../../src/emulator/index.ts'
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

/** How long nothing more may be delivered while something disagrees, milliseconds: to be slow is no fault. */
const PATIENCE = 15_000

/** Facts of states that pass: the service does not show them afterwards (src/sidecar/README.md, Facts). */
const PASSING = /^(session\.(working|idle|requires_action|failed)|action\.|call\.)/

const ENDS = ['turn.completed', 'turn.failed', 'turn.ended']
const FINAL_ARTIFACTS = ['ready', 'partial', 'failed']
const STATE =
  /^(session\.(created|deleted|working|idle|requires_action|failed)|turn\.(started|completed|failed|ended|settled)|action\.(required|resolved)|call\.(answered|failed|not_delivered))$/

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
      throw new Error(`${faults.length} disagreements:\n${faults.slice(0, 30).join('\n')}`)
    }
    // To look takes from what is looked at: both are in this process.
    await pause(Math.min(100, Math.max(10, (performance.now() - begun) / 10)))
  }
}

function lastingFaults(rig: Rig, { handler }: OracleOptions): string[] {
  return [...identities(rig.app.seen(handler)), ...order(rig.app.delivered(handler))]
}

async function faultsOf(rig: Rig, options: OracleOptions): Promise<string[]> {
  const ledger = rig.emulator.ledger()
  const events = rig.app.delivered(options.handler)
  const faults = [
    ...underWay(ledger),
    ...(options.transcript === false ? [] : transcript(ledger, events, options)),
    ...turns(ledger, events, options),
    ...actions(ledger, events, options),
    ...calls(rig, ledger, events, options),
  ]
  // Only asked when all else agrees: it costs requests.
  return faults.length > 0 || rig.program === null ? faults : await deliveries(rig, options)
}

export function underWay(ledger: LedgerView): string[] {
  const working = ledger.sessions.filter(
    ({ deleted_at, status }) => deleted_at === null && status === 'working',
  )
  const alive = new Set(ledger.sessions.filter(({ deleted_at }) => deleted_at === null).map(({ id }) => id))
  const collecting = ledger.turns.filter(
    ({ artifacts, session_id }) => artifacts === 'pending' && alive.has(session_id),
  )
  return [
    ...working.map(({ id }) => `session ${id} is still working`),
    ...collecting.map(({ id }) => `turn ${id} still collects its artifacts`),
  ]
}

/** What an event is about, by its natural key (src/sidecar/README.md, Facts). */
export function naturalKey(event: Event): string {
  const { data, type, session_id: session } = event
  if (!STATE.test(type)) return `seq ${data.seq ?? event.id}`
  if (type.startsWith('turn.')) return `${ENDS.includes(type) ? 'turn.end' : type} ${data.turn?.id}`
  if (type.startsWith('action.')) return `${type} ${data.action?.call_id}`
  if (type.startsWith('call.')) return `call ${data.call?.call_id}`
  if (type === 'session.created' || type === 'session.deleted') return `${type} ${session}`
  return `${type} ${session} ${data.session?.updated_at}`
}

/** One id for one thing, and one thing for one id, over all attempts, restarts and channels. */
export function identities(events: readonly Event[]): string[] {
  const ids = new Map<string, string>()
  const keys = new Map<string, string>()
  const faults: string[] = []
  for (const event of events) {
    const key = naturalKey(event)
    const id = ids.get(key) ?? event.id
    const other = keys.get(event.id) ?? key
    if (id !== event.id) faults.push(`${key} came under ${id} and under ${event.id}`)
    if (other !== key) faults.push(`${event.id} means ${other} and ${key}`)
    ids.set(key, id)
    keys.set(event.id, other)
  }
  return [...new Set(faults)]
}

export function transcript(
  ledger: LedgerView,
  events: readonly Event[],
  { afterSeq = 0, except = [] }: OracleOptions,
): string[] {
  const delivered = new Map(
    events.filter(({ type }) => !STATE.test(type)).map((event) => [event.data.seq, event]),
  )
  return ledger.events
    .filter(({ seq, session_id }) => seq > afterSeq && !except.includes(session_id))
    .flatMap(({ seq, type, session_id }) => {
      const event = delivered.get(seq)
      if (event === undefined) return [`seq ${seq} (${type}) was not delivered`]
      const name = STATE.test(type) ? `stream.${type}` : type
      if (event.type !== name) return [`seq ${seq} is ${type} and was delivered as ${event.type}`]
      return event.session_id === session_id ? [] : [`seq ${seq} names session ${event.session_id}`]
    })
}

export function turns(
  ledger: LedgerView,
  events: readonly Event[],
  { except = [] }: OracleOptions,
): string[] {
  const faults: string[] = []
  const gone = new Set(ledger.sessions.filter(({ deleted_at }) => deleted_at !== null).map(({ id }) => id))
  for (const turn of ledger.turns) {
    if (except.includes(turn.session_id)) continue
    const mine = events.filter(({ data }) => data.turn?.id === turn.id)
    const kinds = new Set(mine.map(({ type }) => type))
    if (gone.has(turn.session_id)) continue
    if (!kinds.has('turn.started')) faults.push(`turn ${turn.id}: no turn.started`)
    const ends = mine.filter(({ type }) => ENDS.includes(type))
    const right =
      turn.status === 'completed' ? 'turn.completed' : turn.status === 'failed' ? 'turn.failed' : 'turn.ended'
    if (turn.completed_at !== null && !kinds.has(right))
      faults.push(`turn ${turn.id} (${turn.status}): no ${right}`)
    for (const { type, data } of ends) {
      if (turn.completed_at === null) faults.push(`turn ${turn.id} is under way and was reported as ${type}`)
      else if (type !== right || data.turn?.status !== turn.status)
        faults.push(`turn ${turn.id} (${turn.status}) was reported as ${type} (${data.turn?.status})`)
    }
    const settled = mine.find(({ type }) => type === 'turn.settled')
    if (!FINAL_ARTIFACTS.includes(String(turn.artifacts))) continue
    if (settled === undefined) faults.push(`turn ${turn.id}: no turn.settled`)
    else if (settled.data.turn?.artifacts !== turn.artifacts)
      faults.push(`turn ${turn.id}: settled as ${settled.data.turn?.artifacts}, is ${turn.artifacts}`)
  }
  return faults
}

/**
 * An action that began and ended between two reads makes no fact; a reported action must have its
 * end reported.
 */
export function actions(
  ledger: LedgerView,
  events: readonly Event[],
  { except = [] }: OracleOptions,
): string[] {
  const faults: string[] = []
  for (const action of ledger.actions) {
    if (except.includes(action.session_id)) continue
    const kinds = new Set(
      events.filter(({ data }) => data.action?.call_id === action.call_id).map(({ type }) => type),
    )
    if (action.resolved_at === null && !kinds.has('action.required'))
      faults.push(`action ${action.call_id}: no action.required`)
    if (action.resolved_at === null && kinds.has('action.resolved'))
      faults.push(`action ${action.call_id} is open and was reported as resolved`)
    if (action.resolved_at !== null && kinds.has('action.required') && !kinds.has('action.resolved'))
      faults.push(`action ${action.call_id}: no action.resolved`)
  }
  return faults
}

/** Every call that the sidecar was asked to run has one answer, and the model has what the tool said. */
function calls(
  rig: Rig,
  ledger: LedgerView,
  events: readonly Event[],
  { tools = [], except = [] }: OracleOptions,
): string[] {
  const faults: string[] = []
  for (const action of ledger.actions) {
    const { call_id: callId } = action
    if (except.includes(action.session_id)) continue
    const answers = ledger.answers.filter(
      (answer) => answer.call_id === callId && answer.token_id !== rig.client.token.id,
    )
    if (action.type !== 'function_call' || !tools.includes(action.name)) {
      if (answers.length > 0) faults.push(`${action.type} ${callId} is not ours and was answered`)
      continue
    }
    if (action.resolved_at === null) {
      faults.push(`call ${callId} waits`)
      continue
    }
    const ends = events.filter(({ data }) => data.call?.call_id === callId)
    if (ends.length === 0) faults.push(`call ${callId} (${action.resolution?.kind}): no call.* event`)
    const bodies = new Set(answers.map(({ output, error }) => JSON.stringify([output, error])))
    if (bodies.size > 1)
      faults.push(`call ${callId} was answered in ${bodies.size} ways: ${[...bodies].join(' / ')}`)
    const keys = new Set(answers.map(({ idempotency_key }) => idempotency_key))
    if (keys.size > 1) faults.push(`call ${callId} was answered under ${keys.size} idempotency keys`)
    const runs = rig.app.runs.filter(({ call }) => call.call_id === callId)
    const firstAnswer = answers[0]
    if (firstAnswer !== undefined && runs.length === 0)
      faults.push(`call ${callId} was answered and its tool never ran`)
    if (runs.some(({ headers }) => headers['idempotency-key'] !== callId))
      faults.push(`call ${callId}: a run has another idempotency-key`)
  }
  return faults
}

/** Per session: the transcript by seq, state in causal order, a turn's end after its frame (test/README.md, Order). */
export function order(events: readonly Event[]): string[] {
  const faults: string[] = []
  const first = new Map<string, number>()
  const highest = new Map<string, number>()
  const seen = new Set<string>()
  const before = (earlier: string, later: string): void => {
    const a = first.get(earlier)
    const b = first.get(later)
    if (a !== undefined && b !== undefined && a > b) faults.push(`${later} came before ${earlier}`)
  }
  for (const [index, event] of events.entries()) {
    if (seen.has(event.id)) continue
    seen.add(event.id)
    first.set(naturalKey(event), index)
    const { seq } = event.data
    if (STATE.test(event.type) || typeof seq !== 'number') continue
    const session = String(event.session_id)
    const last = highest.get(session) ?? 0
    if (seq < last) faults.push(`seq ${seq} of ${session} came after ${last}`)
    highest.set(session, Math.max(last, seq))
  }
  for (const { data, session_id, type } of events) {
    if (data.turn !== undefined) {
      const { id } = data.turn
      before(`session.created ${session_id}`, `turn.started ${id}`)
      before(`turn.started ${id}`, `turn.end ${id}`)
      before(`turn.end ${id}`, `turn.settled ${id}`)
    }
    if (data.action !== undefined) {
      const { call_id, turn_id } = data.action
      before(`turn.started ${turn_id}`, `action.required ${call_id}`)
      before(`action.required ${call_id}`, `action.resolved ${call_id}`)
      before(`action.resolved ${call_id}`, `turn.end ${turn_id}`)
    }
    if (type === 'session.deleted') {
      for (const key of first.keys())
        if (key.endsWith(` ${session_id}`)) before(key, `session.deleted ${session_id}`)
    }
  }
  return [...new Set(faults)]
}

/** The sidecar's own books: nothing pending, nothing dead that should not be, every event delivered once. */
async function deliveries(
  rig: Rig,
  { dead = 0, handler = 'app', restored = false }: OracleOptions,
): Promise<string[]> {
  const books = await rig.list(`/api/deliveries?handler=${handler}`)
  const faults: string[] = []
  const pending = books.filter(({ status }) => status === 'pending')
  if (pending.length > 0)
    faults.push(`${pending.length} deliveries are pending, such as ${JSON.stringify(pending[0])}`)
  const lost = books.filter(({ status }) => status === 'dead')
  if (lost.length !== dead) faults.push(`${lost.length} deliveries are dead, not ${dead}`)
  const delivered = rig.app.delivered(handler)
  const answered = new Set(delivered.map(({ id }) => id))
  for (const { fact_id, status } of books) {
    if (status === 'delivered' && !answered.has(String(fact_id)))
      faults.push(`${String(fact_id)} counts as delivered and was not answered`)
  }
  const facts = new Set(books.map(({ fact_id }) => fact_id))
  for (const { id, type } of delivered) {
    if (facts.has(id) || (restored && PASSING.test(type))) continue
    faults.push(`${id} (${type}) was delivered and is not in the books`)
  }
  return faults
}
