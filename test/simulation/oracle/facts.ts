import { firstFault, reportOf, type Fault, type FactRow, type Report } from '../../checker/history.ts'
import { actions, contents, identities, naturalKey, order, transcript, turns } from '../../checker/reports.ts'
import type { ModelSession, ModelTurn } from '../service/state.ts'
import type { Simulation } from '../simulation.ts'
import { isStoredAnew } from '../scope.ts'
import { ABOUT } from './beginning.ts'

/** A fact of the log, in the order of positions. */
interface Logged extends Report {
  at: number
}

/** I1, I3, I7 and I12: everything that happened is a fact, once, in its order. */
export function factFaults(simulation: Simulation): Fault | null {
  const facts = factsOf(simulation)
  const alive = simulation.state.alive().filter(isOurs)
  const history = {
    sessions: [],
    turns: alive.flatMap(({ id, turns }) =>
      turns
        .filter((turn) => isNew(simulation, turn.createdAt) || wasUnderWay(simulation, turn))
        .map((turn) => ({ ...turn, session_id: id, completed_at: turn.completedAt })),
    ),
    actions: alive.flatMap(({ actions }) =>
      actions.map(({ callId }) => ({ call_id: callId, resolved_at: null })),
    ),
    events: simulation.scenario.channels.stream ? eventsOf(simulation, facts) : [],
  }
  return firstFault(
    () => misplaced(simulation, facts),
    () => (simulation.scenario.channels.stream ? early(simulation, facts) : items(simulation, facts)),
    () => transcript(history, facts),
    () => created(simulation, facts),
    () => turns(history, facts),
    () => actions(history, facts),
    () => late(simulation, facts),
  )
}

/** What holds of the log at any time. */
export function logFaults(simulation: Simulation): Fault | null {
  const facts = factsOf(simulation)
  return firstFault(() => misplaced(simulation, facts))
}

function factsOf({ db }: Simulation): Logged[] {
  return db
    .prepare<[], FactRow & { at: number }>(
      'SELECT id, type, session_id, family, seq, body, at FROM all_facts ORDER BY pos',
    )
    .all()
    .map((row) => ({ ...reportOf(row), at: row.at }))
}

function misplaced(simulation: Simulation, facts: readonly Logged[]): Fault[] {
  const kept = withoutForgotten(simulation, facts)
  return [
    ...twice(simulation, facts),
    ...identities(facts),
    ...contents(kept),
    ...order(withoutReturns(simulation, facts)),
  ]
}

/** Facts that were stored anew, without the earlier ones of their ids. */
function withoutForgotten(simulation: Simulation, facts: readonly Logged[]): readonly Logged[] {
  if (simulation.scenario.upkeep === null || (simulation.scenario.scope ?? null) === null) return facts
  const last = new Map(facts.map((fact) => [fact.id, fact]))
  return facts.filter((fact) => {
    const again = last.get(fact.id)
    return again === undefined || again === fact || !isForgotten(simulation, fact, again)
  })
}

/**
 * Without the `session.created` of a session that left the scope, was forgotten, and returned. A session that was there before our
 * first start has none until then.
 */
function withoutReturns({ state, scenario }: Simulation, facts: readonly Logged[]): readonly Logged[] {
  const retention = scenario.upkeep?.retention ?? null
  const first = new Map(facts.toReversed().map(({ session_id: id, at }) => [id, at]))
  return facts.filter(({ type, session_id: id, at: again }) => {
    if (type !== 'session.created') return true
    const { fate } = state.sessions.get(id ?? '') ?? {}
    return !isStoredAnew(fate, retention, { before: first.get(id) ?? again, again })
  })
}

/** The same thing stored twice. */
function twice(simulation: Simulation, facts: readonly Logged[]): Fault[] {
  const first = new Map<string, Logged>()
  const faults: Fault[] = []
  for (const fact of facts) {
    const key = naturalKey(fact)
    const before = first.get(key)
    if (before === undefined) first.set(key, fact)
    else if (!isForgotten(simulation, before, fact))
      faults.push({ invariant: 'I1', message: `${key} is stored as ${before.id} and as ${fact.id}` })
  }
  return faults
}

/** Transcript facts are never stored anew: what was pruned of the stream is known by its seq. */
function isForgotten({ state, scenario }: Simulation, before: Logged, fact: Logged): boolean {
  if (fact.id !== before.id || typeof fact.data.seq === 'number') return false
  const fate = state.sessions.get(fact.session_id ?? '')?.fate
  return isStoredAnew(fate, scenario.upkeep?.retention ?? null, { before: before.at, again: fact.at })
}

/**
 * Every persisted event from the first that we took, or from the first of a session that was made after we first opened
 * the stream. With `now`, those before were there before us.
 */
function eventsOf(simulation: Simulation, facts: readonly Logged[]) {
  const { state, scenario } = simulation
  const stored = seqsOf(facts)
  const [begun = Infinity] = stored
  const first = scenario.startFrom === 'beginning' ? 0 : Math.min(begun, firstNew(simulation))
  return state.events
    .filter(({ seq, sessionId }) => {
      const session = state.sessions.get(sessionId ?? '')
      if (seq < first || (session !== undefined && session.fate !== 'ours')) return false
      // It was deleted before it could be read, so its owner is unknown.
      return stored.has(seq) || (scenario.scope ?? null) === null || session?.deleted !== true
    })
    .map(({ seq, type, sessionId }) => ({ seq, type, session_id: sessionId }))
}

function early(simulation: Simulation, facts: readonly Logged[]): Fault[] {
  const { state, scenario, watch, begin } = simulation
  if (scenario.startFrom !== 'now') return []
  const stored = seqsOf(facts)
  const before = Math.min(begin - ABOUT, watch.beginning.earliest - scenario.skew)
  return state.events
    .filter(({ at, seq }) => at < before && stored.has(seq))
    .filter(({ sessionId }) => (state.sessions.get(sessionId ?? '')?.fate ?? 'ours') === 'ours')
    .map(({ seq, type }) => ({
      invariant: 'old',
      message: `seq ${seq} (${type}) is older than the start and is delivered`,
    }))
}

function seqsOf(facts: readonly Logged[]): Set<number> {
  return new Set(facts.flatMap(({ data: { seq } }) => (typeof seq === 'number' ? seq : [])))
}

/** The seq from which events are certainly new. */
function firstNew({ state, db }: Simulation): number {
  const opened = db
    .prepare<[], string>("SELECT value FROM checkpoints WHERE name = 'stream_opened'")
    .pluck()
    .get()
  if (opened === undefined) return Infinity
  const made = new Map(state.alive().map(({ id, createdAt }) => [id, createdAt]))
  const first = state.events.find(
    ({ sessionId }) => (made.get(sessionId ?? '') ?? 0) > Number(opened) + ABOUT,
  )
  return first?.seq ?? Infinity
}

function items({ state, scenario }: Simulation, facts: readonly Logged[]): Fault[] {
  if (scenario.startFrom !== 'beginning') return []
  const stored = new Set(facts.map((fact) => naturalKey(fact)))
  return state
    .alive()
    .filter(isOurs)
    .flatMap(({ items }) => items.filter(({ id }) => !stored.has(`item ${id}`)))
    .map(({ id, event }) => ({ invariant: 'I1', message: `item ${id} (${event}) is not stored` }))
}

/** Older events make no facts unless `start_from` is `beginning`. */
function isNew({ scenario, lookedFrom }: Simulation, createdAt: number): boolean {
  return scenario.startFrom === 'beginning' || createdAt > (lookedFrom ?? Infinity) + scenario.skew + 1000
}

/** A turn that the first look found before its artifacts were final makes its facts, however long it had been there. */
function wasUnderWay({ scenario, lookedAt }: Simulation, { settledAt }: ModelTurn): boolean {
  return lookedAt !== null && (settledAt ?? Infinity) > lookedAt + scenario.skew
}

function isOurs({ fate }: ModelSession): boolean {
  return fate === 'ours'
}

function created(simulation: Simulation, facts: readonly Logged[]): Fault[] {
  const reported = new Set(facts.map(({ type, session_id }) => `${type} ${session_id}`))
  return simulation.state
    .alive()
    .filter(isOurs)
    .filter(({ id, createdAt }) => isNew(simulation, createdAt) && !reported.has(`session.created ${id}`))
    .map(({ id }) => ({ invariant: 'I1', message: `there is no session.created of ${id}` }))
}

/**
 * Without faults, the maximum delay of a reported end, milliseconds: a poll every ten seconds, and
 * the read.
 */
const SOON = 15_000
/** Where the service's rate was used up now and then, it takes so much longer. */
const LIMITED = 20_000

function late({ sites, state, scenario, begin, network }: Simulation, facts: readonly Logged[]): Fault[] {
  if (sites.fired.some(({ fault }) => fault !== 'rate_limit') || network.hung?.inFirstLook === true) return []
  // A fact has the time of the process that stored it.
  const off = Math.max(0, ...(scenario.replicas?.skews ?? []))
  const most = off + (sites.fired.length > 0 ? SOON + LIMITED : SOON)
  const ends = new Map(facts.filter(({ type }) => ENDS.test(type)).map(({ data, at }) => [data.turn?.id, at]))
  const faults: Fault[] = []
  // Reads of one session that have no answer delay the ends of no other.
  for (const { turns } of state
    .alive()
    .filter((session) => isOurs(session) && session.id !== network.hung?.id)) {
    for (const { id, completedAt } of turns) {
      // An end before the start is reported at the start.
      const from = Math.max(completedAt ?? Infinity, begin + scenario.skew)
      const lag = (ends.get(id) ?? 0) + scenario.skew - from
      if (lag > most)
        faults.push({ invariant: 'prompt', message: `the end of ${id} was reported after ${lag} ms` })
    }
  }
  return faults
}

const ENDS = /^turn\.(completed|failed|ended)$/
